/* normalize: changes text before it is split: SentencePiece's character map, Unicode forms, and all other
 * steps. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/display.h"
#include "engine/tokens/tokens_int.h"

/* --- SentencePiece's character map */

enum { WHOLE_BYTES = 5 }; /* Clusters up to this length, in bytes, are looked up as a whole. */

/* --- the tree, in the layout of darts-clone */

static uint32_t number_at(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t offset_of(uint32_t unit)
{
    return unit >> 10 << ((unit & 0x200) >> 6);
}

static bool is_value(uint32_t unit)
{
    return unit >> 31 != 0;
}

/* Returns the replacement of the shortest key that is a prefix of the text; NULL if there is
 * none. */
static const char *find(const dt_charsmap *map, const unsigned char *text, size_t length)
{
    uint32_t node = offset_of(number_at(map->units));

    for (size_t i = 0; i < length && text[i] != 0; i++) {
        uint32_t unit;

        node ^= text[i];
        if (node >= map->count)
            return NULL;
        unit = number_at(map->units + 4 * (size_t)node);
        if ((unit & 0x800000ffu) != text[i])
            return NULL;
        node ^= offset_of(unit);
        if ((unit & 0x100) == 0)
            continue;
        unit = node < map->count ? number_at(map->units + 4 * (size_t)node) : 0;
        return is_value(unit) ? map->replacements + (unit & 0x7fffffffu) : NULL;
    }
    return NULL;
}

static dt_status check_values(const dt_charsmap *map, dt_error *err)
{
    for (size_t i = 0; i < map->count; i++) {
        uint32_t unit = number_at(map->units + 4 * i), at = unit & 0x7fffffffu;

        if (is_value(unit) &&
            (at > map->length || ((unsigned char)map->replacements[at] & 0xc0) == 0x80))
            return DT_FAIL(err, DT_ERR_CORRUPT,
                           "unit %zu of the tree points to byte %u of %zu bytes of replacements, "
                           "which does not "
                           "begin a character",
                           i, at, map->length);
    }
    return DT_OK;
}

dt_status dt_charsmap_read(dt_charsmap *out, const char *bytes, size_t length, dt_error *err)
{
    dt_status st = DT_OK;
    size_t tree, good;

    *out = (dt_charsmap){.count = 0};
    tree = length >= 4 ? number_at((const unsigned char *)bytes) : 0;
    if (tree == 0 || tree % 4 != 0 || tree > length - 4)
        DT_THROW(err, DT_ERR_CORRUPT, "the tree has %zu bytes, and the whole map %zu", tree,
                 length);
    out->units = (const unsigned char *)bytes + 4;
    out->count = tree / 4;
    out->replacements = bytes + 4 + tree;
    out->length = length - 4 - tree;
    good = dt_utf8_valid_length(out->replacements, out->length);
    if (good < out->length)
        DT_THROW(err, DT_ERR_CORRUPT, "byte %zu of the replacements is not UTF-8 (0x%02x)", good,
                 (unsigned char)out->replacements[good]);
    DT_TRY(check_values(out, err));
    for (unsigned char c = 1; c < 128; c++)
        out->ascii[c] = find(out, &c, 1);
out:
    return st;
}

/* --- the text */

static size_t cluster_length(const unsigned char *at, size_t left)
{
    utf8proc_int32_t state = 0;
    size_t used, next_used;
    uint32_t code = dt_code_at(at, &used);

    while (used < left) {
        uint32_t next = dt_code_at(at + used, &next_used);

        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)code, (utf8proc_int32_t)next,
                                             &state))
            break;
        code = next;
        used += next_used;
    }
    return used;
}

static void add_cluster(dt_strbuf *out, const dt_charsmap *map, const unsigned char *at,
                        size_t length)
{
    const char *whole = length <= WHOLE_BYTES ? find(map, at, length) : NULL;
    size_t used;

    if (whole != NULL) {
        dt_strbuf_add_str(out, whole);
        return;
    }
    for (const unsigned char *end = at + length; at < end; at += used) {
        const char *to;

        (void)dt_code_at(at, &used);
        to = find(map, at, used);
        if (to != NULL)
            dt_strbuf_add_str(out, to);
        else
            dt_strbuf_add(out, at, used);
    }
}

/* Returns whether the character is ASCII and a grapheme cluster of its own. */
static bool is_plain(const unsigned char *at, size_t left)
{
    return at[0] < 0x80 && (left == 1 || (at[1] < 0x80 && !(at[0] == '\r' && at[1] == '\n')));
}

/* Appends the text (valid UTF-8), with its characters replaced. */
static void charsmap_add(dt_strbuf *out, const dt_charsmap *map, const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;

    while (at < end) {
        const unsigned char *plain = at;
        size_t cluster;

        while (plain < end && is_plain(plain, (size_t)(end - plain)) && map->ascii[*plain] == NULL)
            plain++;
        dt_strbuf_add(out, at, (size_t)(plain - at));
        at = plain;
        if (at == end)
            break;
        cluster = is_plain(at, (size_t)(end - at)) ? 1 : cluster_length(at, (size_t)(end - at));
        add_cluster(out, map, at, cluster);
        at += cluster;
    }
}

/* forms: cuts text before each code point that the form keeps unchanged and that does not combine with anything
 * before it. Between two cuts, code points are decomposed, marks are sorted into canonical order, and code points
 * are composed, if the form composes. libutf8proc sorts marks in quadratic time, hence the sort here.
 */

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
    size_t count;
    int64_t capacity;
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

static dt_status reserve(parts *run, dt_error *err)
{
    int64_t wanted = (int64_t)run->count + LONGEST, capacity = run->capacity;
    int32_t *codes = NULL;
    part *items;

    if (wanted <= capacity)
        return DT_OK;
    items = wanted <= UINT32_MAX ? dt_array_try_room(run->items, wanted, &capacity, sizeof(*items))
                                 : NULL;
    if (items != NULL) {
        run->items = items;
        codes = dt_array_try_room(run->codes, wanted, &run->capacity, sizeof(*codes));
    }
    if (codes == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %zu combining characters in a row",
                       run->count);
    run->codes = codes;
    return DT_OK;
}

static dt_status decompose(parts *run, dt_form form, uint32_t code, dt_error *err)
{
    utf8proc_option_t options =
        is_compatible(form) ? UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT : UTF8PROC_DECOMPOSE;
    int32_t codes[LONGEST];
    utf8proc_ssize_t count;
    dt_status st = DT_OK;

    DT_TRY(reserve(run, err));
    count = utf8proc_decompose_char((utf8proc_int32_t)code, codes, LONGEST, options, NULL);
    DT_ASSERT(count > 0 && count <= LONGEST);
    for (utf8proc_ssize_t i = 0; i < count; i++)
        run->items[run->count++] =
            (part){codes[i], (uint32_t)run->count,
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

static void order_marks(parts *run)
{
    size_t end;

    for (size_t start = 0; start < run->count; start = end + 1) {
        for (end = start; end < run->count && run->items[end].combining != 0;)
            end++;
        if (end - start > 1)
            qsort(run->items + start, end - start, sizeof(*run->items), by_class);
    }
}

static void flush(dt_strbuf *out, parts *run, dt_form form)
{
    utf8proc_ssize_t count = (utf8proc_ssize_t)run->count;
    char bytes[DT_UTF8_MAX];

    order_marks(run);
    for (size_t i = 0; i < run->count; i++)
        run->codes[i] = run->items[i].code;
    if (composes(form) && count > 1)
        count = utf8proc_normalize_utf32(run->codes, count, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; i < count; i++)
        dt_strbuf_add(out, bytes, dt_utf8_encode(bytes, (uint32_t)run->codes[i]));
    run->count = 0;
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

/* Appends the text (valid UTF-8) in the form. DT_ERR_NOMEM. */
static dt_status form_add(dt_strbuf *out, dt_form form, const char *text, size_t length,
                          dt_error *err)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length, *done = at;
    const unsigned char *last = at; /* start of the last stable code point */
    parts run = {0};
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
            DT_TRY(decompose(&run, form, code, err));
        }
        flush(out, &run, form);
        done = last = at;
        used = 0;
    }
    dt_strbuf_add(out, done, (size_t)(end - done));
out:
    free(run.items);
    free(run.codes);
    return st;
}

/* --- the steps of a normalizer */

static void replace(dt_strbuf *out, const char *text, size_t length, const char *from,
                    const char *to)
{
    size_t from_length = strlen(from), to_length = strlen(to), start = 0;

    for (size_t at = 0; at + from_length <= length;) {
        const char *hit = memchr(text + at, from[0], length - from_length + 1 - at);

        if (hit == NULL)
            break;
        at = (size_t)(hit - text);
        if (memcmp(hit, from, from_length) != 0) {
            at++;
            continue;
        }
        dt_strbuf_add(out, text + start, at - start);
        dt_strbuf_add(out, to, to_length);
        at += from_length;
        start = at;
    }
    dt_strbuf_add(out, text + start, length - start);
}

/* Replaces two or more spaces in a row by `to`. */
static void replace_spaces(dt_strbuf *out, const char *text, size_t length, const char *to)
{
    for (const char *end = text + length; text < end;) {
        const char *space = memchr(text, ' ', (size_t)(end - text)), *behind;

        if (space == NULL)
            space = end;
        for (behind = space; behind < end && *behind == ' ';)
            behind++;
        dt_strbuf_add(out, text, (size_t)(space - text));
        if (behind - space > 1)
            dt_strbuf_add_str(out, to);
        else
            dt_strbuf_add(out, space, (size_t)(behind - space));
        text = behind;
    }
}

static bool is_space(const char *at)
{
    size_t used;

    return dt_code_class_of(dt_code_at((const unsigned char *)at, &used)) == DT_CODE_SPACE;
}

static void strip(dt_strbuf *out, const char *text, size_t length, bool left, bool right)
{
    const char *end = text + length, *last;
    size_t used;

    for (; left && text < end && is_space(text); text += used)
        (void)dt_code_at((const unsigned char *)text, &used);
    for (; right && text < end; end = last) {
        for (last = end - 1; last > text && (*last & 0xc0) == 0x80;)
            last--;
        if (!is_space(last))
            break;
    }
    dt_strbuf_add(out, text, (size_t)(end - text));
}

/* Appends the replacement of one character. */
typedef void code_fn(dt_strbuf *out, uint32_t code);

static void add_code(dt_strbuf *out, uint32_t code)
{
    char bytes[DT_UTF8_MAX];

    dt_strbuf_add(out, bytes, dt_utf8_encode(bytes, code));
}

/* Appends the lower case of a code point. Only U+0130 becomes two code points: an i and a dot
 * above. */
static void add_lower(dt_strbuf *out, uint32_t code)
{
    if (code == 0x130)
        dt_strbuf_add_str(out, "i\xcc\x87");
    else
        add_code(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)code));
}

static void add_unless_mark(dt_strbuf *out, uint32_t code)
{
    if (dt_code_class_of(code) != DT_CODE_MARK)
        add_code(out, code);
}

static void add_unless_nonspacing(dt_strbuf *out, uint32_t code)
{
    if (utf8proc_category((utf8proc_int32_t)code) != UTF8PROC_CATEGORY_MN)
        add_code(out, code);
}

/* Leaves out what is not text: controls but for white space, formats, private characters, U+FFFD. */
static void add_clean(dt_strbuf *out, uint32_t code)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    bool is_control = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
                      category == UTF8PROC_CATEGORY_CO;

    if (code == '\t' || code == '\n' || code == '\r' ||
        (!is_control && dt_code_class_of(code) == DT_CODE_SPACE))
        dt_strbuf_add_char(out, ' ');
    else if (!is_control && code != 0xfffd)
        add_code(out, code);
}

/* Han characters, in the blocks that BERT's tokenizers know. */
static void add_apart(dt_strbuf *out, uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } blocks[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
                  {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    bool is_han = false;

    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
        is_han = is_han || (code >= blocks[i].first && code <= blocks[i].last);
    if (is_han)
        dt_strbuf_add_char(out, ' ');
    add_code(out, code);
    if (is_han)
        dt_strbuf_add_char(out, ' ');
}

/* Applies SentencePiece's "nmt" rules: drops control characters, and turns all kinds of space into
 * one. */
static void add_nmt(dt_strbuf *out, uint32_t code)
{
    static const uint32_t spaces[] = {'\t',   '\n',   '\f',   '\r',   0x1680,
                                      0x200b, 0x200c, 0x200d, 0x200e, 0x200f,
                                      0x2028, 0x2029, 0x2581, 0xfeff, 0xfffd};

    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
        if (code == spaces[i]) {
            dt_strbuf_add_char(out, ' ');
            return;
        }
    if ((code >= ' ' && code != 0x7f && code != 0x8f && code != 0x9f) || code == 0)
        add_code(out, code);
}

static void each_code(dt_strbuf *out, const char *text, size_t length, code_fn *add)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    size_t used;

    for (; at < end; at += used) {
        uint32_t code = dt_code_at(at, &used);

        add(out, code);
    }
}

static dt_status apply(dt_strbuf *out, const dt_normal_step *step, const char *text, size_t length,
                       bool begins, dt_error *err)
{
    switch (step->kind) {
    case DT_NORMAL_FORM:
        return form_add(out, step->form, text, length, err);
    case DT_NORMAL_PREPEND:
        if (length > 0 && begins)
            dt_strbuf_add_str(out, step->to);
        dt_strbuf_add(out, text, length);
        break;
    case DT_NORMAL_REPLACE:
        replace(out, text, length, step->from, step->to);
        break;
    case DT_NORMAL_REPLACE_SPACES:
        replace_spaces(out, text, length, step->to);
        break;
    case DT_NORMAL_STRIP:
        strip(out, text, length, step->left, step->right);
        break;
    case DT_NORMAL_STRIP_ACCENTS:
        each_code(out, text, length, add_unless_mark);
        break;
    case DT_NORMAL_LOWERCASE:
        each_code(out, text, length, add_lower);
        break;
    case DT_NORMAL_NMT:
        each_code(out, text, length, add_nmt);
        break;
    case DT_NORMAL_CHARSMAP:
        charsmap_add(out, step->charsmap, text, length);
        break;
    case DT_NORMAL_PATTERN:
        dt_pattern_replace(out, step->pattern, text, length, step->to);
        break;
    case DT_NORMAL_CLEAN:
        each_code(out, text, length, add_clean);
        break;
    case DT_NORMAL_APART:
        each_code(out, text, length, add_apart);
        break;
    case DT_NORMAL_NONSPACING:
        each_code(out, text, length, add_unless_nonspacing);
        break;
    }
    return DT_OK;
}

dt_status dt_bpe_normalize(dt_strbuf *out, const dt_bpe *bpe, const char *text, size_t length,
                           bool begins, dt_error *err)
{
    size_t most = (64 << 20) + 64 * length;
    dt_status st = DT_OK;
    dt_strbuf made[2];

    dt_strbuf_init(&made[0]);
    dt_strbuf_init(&made[1]);
    if (bpe->step_count == 0)
        dt_strbuf_add(out, text, length);
    for (int i = 0; i < bpe->step_count; i++) {
        const dt_normal_step *step = &bpe->steps[i];
        dt_strbuf *next = i + 1 < bpe->step_count ? &made[i % 2] : out;

        if (step->kind == DT_NORMAL_PATTERN && length > most / (strlen(step->to) + 1))
            DT_THROW(err, DT_ERR_UNSUPPORTED,
                     "'normalizer': Replace would make the text more than 64 times as long");
        if (step->kind == DT_NORMAL_REPLACE &&
            length / strlen(step->from) > most / (strlen(step->to) + 1))
            DT_THROW(err, DT_ERR_UNSUPPORTED,
                     "'normalizer': Replace would make the text more than 64 times as long");
        if (next != out)
            dt_strbuf_reset(next);
        DT_TRY(apply(next, step, text, length, begins, err));
        text = next->data;
        length = next->length;
    }
out:
    dt_strbuf_release(&made[0]);
    dt_strbuf_release(&made[1]);
    return st;
}
