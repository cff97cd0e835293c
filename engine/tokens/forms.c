/* forms: cuts text before each code point that the form keeps unchanged and that does not combine with anything
 * before it. Between two cuts, code points are decomposed, marks are sorted into canonical order, and code points
 * are composed, if the form composes. libutf8proc sorts marks in quadratic time, hence the sort here.
 */
#include "engine/tokens/forms.h"

#include <stdlib.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "engine/tokens/unicode.h"

enum {
    LONGEST = 18, /* code points of the longest decomposition, that of U+FDFA */
    HANGUL_FIRST = 0xac00,
    HANGUL_LAST = 0xd7a3,
    VOWEL_FIRST = 0x1161, /* from here on, jamo that combine with the syllable before them */
    TAIL_LAST = 0x11c2
};

typedef struct part {
    int32_t code;
    uint32_t place; /* position, which keeps marks of the same class in their order */
    uint8_t combining;
} part;

typedef struct parts {
    part *items;
    int32_t *codes;
    size_t count, capacity;
} parts;

static bool composes(dt_form form)
{
    return form == DT_FORM_NFC || form == DT_FORM_NFKC;
}

static bool is_compatible(dt_form form)
{
    return form == DT_FORM_NFKC || form == DT_FORM_NFKD;
}

/* Returns whether the form may change the code point or what precedes it; also true for some code
 * points that never change. */
static bool is_unstable(dt_form form, uint32_t code)
{
    const utf8proc_property_t *property;

    if (code < 0xa0 || (code < 0x300 && form == DT_FORM_NFC))
        return false;
    if (code >= HANGUL_FIRST && code <= HANGUL_LAST)
        return !composes(form);
    if (code >= VOWEL_FIRST && code <= TAIL_LAST)
        return true;
    property = utf8proc_get_property((utf8proc_int32_t)code);
    if (property->category >= UTF8PROC_CATEGORY_MN && property->category <= UTF8PROC_CATEGORY_ME)
        return true;
    return property->decomp_seqindex != UINT16_MAX &&
           (is_compatible(form) || property->decomp_type == 0);
}

static dt_status reserve(parts *all, dt_error *err)
{
    size_t wider = all->capacity == 0 ? 64 : all->capacity * 2;
    part *items;
    int32_t *codes;

    if (all->count + LONGEST <= all->capacity)
        return DT_OK;
    items = wider <= UINT32_MAX ? realloc(all->items, wider * sizeof(*items)) : NULL;
    if (items != NULL)
        all->items = items;
    codes = items != NULL ? realloc(all->codes, wider * sizeof(*codes)) : NULL;
    if (codes == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %zu combining characters in a row",
                       all->count);
    all->codes = codes;
    all->capacity = wider;
    return DT_OK;
}

static dt_status decompose(parts *all, dt_form form, uint32_t code, dt_error *err)
{
    utf8proc_option_t options =
        is_compatible(form) ? UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT : UTF8PROC_DECOMPOSE;
    int32_t codes[LONGEST];
    utf8proc_ssize_t count;
    dt_status st = DT_OK;

    DT_TRY(reserve(all, err));
    count = utf8proc_decompose_char((utf8proc_int32_t)code, codes, LONGEST, options, NULL);
    DT_ASSERT(count > 0 && count <= LONGEST);
    for (utf8proc_ssize_t i = 0; i < count; i++)
        all->items[all->count++] =
            (part){codes[i], (uint32_t)all->count,
                   (uint8_t)utf8proc_get_property(codes[i])->combining_class};
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

static void flush(dt_strbuf *out, parts *all, dt_form form)
{
    utf8proc_ssize_t count = (utf8proc_ssize_t)all->count;
    char bytes[DT_UTF8_MAX];

    order_marks(all);
    for (size_t i = 0; i < all->count; i++)
        all->codes[i] = all->items[i].code;
    if (composes(form) && count > 1)
        count = utf8proc_normalize_utf32(all->codes, count, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; i < count; i++)
        dt_strbuf_add(out, bytes, dt_utf8_encode(bytes, (uint32_t)all->codes[i]));
    all->count = 0;
}

bool dt_form_holds(dt_form form, const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    size_t used;

    for (; at < end; at += used) {
        used = 1;
        if (at[0] >= 0x80 && is_unstable(form, dt_code_at(at, &used)))
            return false;
    }
    return true;
}

dt_status dt_form_add(dt_strbuf *out, dt_form form, const char *text, size_t length, dt_error *err)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length, *done = at;
    const unsigned char *last = at; /* start of the last stable code point */
    parts all = {0};
    dt_status st = DT_OK;
    size_t used;

    for (; at < end; at += used) {
        used = 1;
        if (at[0] < 0x80 || !is_unstable(form, dt_code_at(at, &used))) {
            last = at;
            continue;
        }
        dt_strbuf_add(out, done, (size_t)(last - done));
        for (at = last; at < end; at += used) {
            uint32_t code = dt_code_at(at, &used);

            if (at > last && !is_unstable(form, code))
                break;
            DT_TRY(decompose(&all, form, code, err));
        }
        flush(out, &all, form);
        done = last = at;
        used = 0;
    }
    dt_strbuf_add(out, done, (size_t)(end - done));
out:
    free(all.items);
    free(all.codes);
    return st;
}
