/* Text is cut before every code point that joins nothing before it. What lies between two cuts is
 * taken apart, its marks are put in order, and it is put together again. */
#include "engine/tokens/nfc.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "engine/tokens/unicode.h"

#include "base/banned.h"

struct order {
    uint32_t code;
    uint8_t combining;
};
struct pair {
    uint32_t code, first, second; /* second 0: another code point for the first */
};

/* orders and pairs ascend by code, joins by first and second. */
#include "engine/tokens/unicode_nfc.inc"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Syllables of Hangul are computed: UAX #15, section 3.12 of the standard. */
enum {
    HANGUL = 0xac00,
    LEAD = 0x1100,
    VOWEL = 0x1161,
    TAIL = 0x11a7,
    LEADS = 19,
    VOWELS = 21,
    TAILS = 28,
    SYLLABLES = LEADS * VOWELS * TAILS
};

typedef struct part {
    uint32_t code;
    uint32_t place; /* keeps marks of one class in their order */
    uint8_t combining;
} part;

typedef struct parts {
    part *items;
    size_t count, capacity;
} parts;

static uint8_t combining_of(uint32_t code)
{
    size_t low = 0, high = COUNT(orders);

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (orders[middle].code < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < COUNT(orders) && orders[low].code == code ? orders[low].combining : 0;
}

static const struct pair *find_pair(uint32_t code)
{
    size_t low = 0, high = COUNT(pairs);

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (pairs[middle].code < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < COUNT(pairs) && pairs[low].code == code ? &pairs[low] : NULL;
}

/* What two code points make together; 0: nothing. */
static uint32_t join(uint32_t first, uint32_t second)
{
    size_t low = 0, high = COUNT(joins);

    if (first - LEAD < LEADS && second - VOWEL < VOWELS)
        return HANGUL + ((first - LEAD) * VOWELS + (second - VOWEL)) * TAILS;
    if (first - HANGUL < SYLLABLES && (first - HANGUL) % TAILS == 0 && second > TAIL &&
        second - TAIL < TAILS)
        return first + (second - TAIL);
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct pair *at = &joins[middle];

        if (at->first < first || (at->first == first && at->second < second))
            low = middle + 1;
        else
            high = middle;
    }
    return low < COUNT(joins) && joins[low].first == first && joins[low].second == second
               ? joins[low].code
               : 0;
}

static dt_status add_part(parts *out, uint32_t code, dt_error *err)
{
    if (out->count == out->capacity) {
        size_t wider = out->capacity == 0 ? 64 : out->capacity * 2;
        part *items = wider <= UINT32_MAX ? realloc(out->items, wider * sizeof(*items)) : NULL;

        if (items == NULL)
            return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %zu characters in a row that combine",
                           out->count);
        out->items = items;
        out->capacity = wider;
    }
    out->items[out->count] = (part){code, (uint32_t)out->count, combining_of(code)};
    out->count++;
    return DT_OK;
}

/* A decomposition's first part may have one itself; its second never has. */
static dt_status take_apart(parts *out, uint32_t code, dt_error *err)
{
    uint32_t rest[8];
    int held = 0;
    dt_status st = DT_OK;
    const struct pair *pair;

    if (code - HANGUL < SYLLABLES) {
        uint32_t index = code - HANGUL;

        DT_TRY(add_part(out, LEAD + index / (VOWELS * TAILS), err));
        DT_TRY(add_part(out, VOWEL + index % (VOWELS * TAILS) / TAILS, err));
        return index % TAILS == 0 ? DT_OK : add_part(out, TAIL + index % TAILS, err);
    }
    while ((pair = find_pair(code)) != NULL) {
        DT_ASSERT(held < (int)COUNT(rest));
        if (pair->second != 0)
            rest[held++] = pair->second;
        code = pair->first;
    }
    DT_TRY(add_part(out, code, err));
    while (held > 0)
        DT_TRY(add_part(out, rest[--held], err));
out:
    return st;
}

static int by_class(const void *a, const void *b)
{
    const part *left = a, *right = b;

    if (left->combining != right->combining)
        return left->combining < right->combining ? -1 : 1;
    return left->place < right->place ? -1 : left->place > right->place;
}

static void order_marks(parts *all)
{
    size_t end;

    for (size_t start = 0; start < all->count; start = end + 1) {
        for (end = start; end < all->count && all->items[end].combining != 0;)
            end++;
        if (end - start > 1)
            qsort(all->items + start, end - start, sizeof(*all->items), by_class);
    }
}

/* In place: a mark joins the last starter unless one of its class, or a starter, is between. */
static void put_together(parts *all)
{
    size_t kept = 0, starter = SIZE_MAX;
    int last = -1; /* class of what was kept behind the starter; -1: nothing was */

    for (size_t i = 0; i < all->count; i++) {
        part now = all->items[i];
        uint32_t joined = 0;

        if (starter != SIZE_MAX && last < (int)now.combining)
            joined = join(all->items[starter].code, now.code);
        if (joined != 0) {
            all->items[starter].code = joined;
            continue;
        }
        last = now.combining;
        if (now.combining == 0) {
            starter = kept;
            last = -1;
        }
        all->items[kept++] = now;
    }
    all->count = kept;
}

static void flush(dt_strbuf *out, parts *all)
{
    char bytes[DT_UTF8_MAX];

    order_marks(all);
    put_together(all);
    for (size_t i = 0; i < all->count; i++)
        dt_strbuf_add(out, bytes, dt_utf8_encode(bytes, all->items[i].code));
    all->count = 0;
}

bool dt_nfc_is(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    size_t used;

    for (; at < end; at += used) {
        used = at[0] < 0x80 ? 1 : 2;
        if (at[0] >= 0xcc && dt_code_is_unstable(dt_code_at(at, &used))) /* U+0300: the first one */
            return false;
    }
    return true;
}

dt_status dt_nfc_add(dt_strbuf *out, const char *text, size_t length, dt_error *err)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    parts all = {0};
    dt_status st = DT_OK;
    size_t used;

    for (; at < end; at += used) {
        uint32_t code = dt_code_at(at, &used);

        if (!dt_code_is_unstable(code))
            flush(out, &all);
        DT_TRY(take_apart(&all, code, err));
    }
    flush(out, &all);
out:
    free(all.items);
    return st;
}
