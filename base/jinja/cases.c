/* cases: upper and lower case, and classes of characters, as Python's str has them. */
#include <string.h>
#include <utf8proc.h>

#include "base/display.h"
#include "base/jinja/jinja_int.h"

/* Characters whose upper or title case has several code points (SpecialCasing.txt, without its conditions). */
typedef struct special {
    uint32_t code, upper[3], title[3];
} special;

static const special specials[] = {
    {0xdf, {0x53, 0x53}, {0x53, 0x73}},
    {0x149, {0x2bc, 0x4e}, {0x2bc, 0x4e}},
    {0x1f0, {0x4a, 0x30c}, {0x4a, 0x30c}},
    {0x390, {0x399, 0x308, 0x301}, {0x399, 0x308, 0x301}},
    {0x3b0, {0x3a5, 0x308, 0x301}, {0x3a5, 0x308, 0x301}},
    {0x587, {0x535, 0x552}, {0x535, 0x582}},
    {0x1e96, {0x48, 0x331}, {0x48, 0x331}},
    {0x1e97, {0x54, 0x308}, {0x54, 0x308}},
    {0x1e98, {0x57, 0x30a}, {0x57, 0x30a}},
    {0x1e99, {0x59, 0x30a}, {0x59, 0x30a}},
    {0x1e9a, {0x41, 0x2be}, {0x41, 0x2be}},
    {0x1f50, {0x3a5, 0x313}, {0x3a5, 0x313}},
    {0x1f52, {0x3a5, 0x313, 0x300}, {0x3a5, 0x313, 0x300}},
    {0x1f54, {0x3a5, 0x313, 0x301}, {0x3a5, 0x313, 0x301}},
    {0x1f56, {0x3a5, 0x313, 0x342}, {0x3a5, 0x313, 0x342}},
    {0x1f80, {0x1f08, 0x399}, {0x1f88}},
    {0x1f81, {0x1f09, 0x399}, {0x1f89}},
    {0x1f82, {0x1f0a, 0x399}, {0x1f8a}},
    {0x1f83, {0x1f0b, 0x399}, {0x1f8b}},
    {0x1f84, {0x1f0c, 0x399}, {0x1f8c}},
    {0x1f85, {0x1f0d, 0x399}, {0x1f8d}},
    {0x1f86, {0x1f0e, 0x399}, {0x1f8e}},
    {0x1f87, {0x1f0f, 0x399}, {0x1f8f}},
    {0x1f88, {0x1f08, 0x399}, {0x1f88}},
    {0x1f89, {0x1f09, 0x399}, {0x1f89}},
    {0x1f8a, {0x1f0a, 0x399}, {0x1f8a}},
    {0x1f8b, {0x1f0b, 0x399}, {0x1f8b}},
    {0x1f8c, {0x1f0c, 0x399}, {0x1f8c}},
    {0x1f8d, {0x1f0d, 0x399}, {0x1f8d}},
    {0x1f8e, {0x1f0e, 0x399}, {0x1f8e}},
    {0x1f8f, {0x1f0f, 0x399}, {0x1f8f}},
    {0x1f90, {0x1f28, 0x399}, {0x1f98}},
    {0x1f91, {0x1f29, 0x399}, {0x1f99}},
    {0x1f92, {0x1f2a, 0x399}, {0x1f9a}},
    {0x1f93, {0x1f2b, 0x399}, {0x1f9b}},
    {0x1f94, {0x1f2c, 0x399}, {0x1f9c}},
    {0x1f95, {0x1f2d, 0x399}, {0x1f9d}},
    {0x1f96, {0x1f2e, 0x399}, {0x1f9e}},
    {0x1f97, {0x1f2f, 0x399}, {0x1f9f}},
    {0x1f98, {0x1f28, 0x399}, {0x1f98}},
    {0x1f99, {0x1f29, 0x399}, {0x1f99}},
    {0x1f9a, {0x1f2a, 0x399}, {0x1f9a}},
    {0x1f9b, {0x1f2b, 0x399}, {0x1f9b}},
    {0x1f9c, {0x1f2c, 0x399}, {0x1f9c}},
    {0x1f9d, {0x1f2d, 0x399}, {0x1f9d}},
    {0x1f9e, {0x1f2e, 0x399}, {0x1f9e}},
    {0x1f9f, {0x1f2f, 0x399}, {0x1f9f}},
    {0x1fa0, {0x1f68, 0x399}, {0x1fa8}},
    {0x1fa1, {0x1f69, 0x399}, {0x1fa9}},
    {0x1fa2, {0x1f6a, 0x399}, {0x1faa}},
    {0x1fa3, {0x1f6b, 0x399}, {0x1fab}},
    {0x1fa4, {0x1f6c, 0x399}, {0x1fac}},
    {0x1fa5, {0x1f6d, 0x399}, {0x1fad}},
    {0x1fa6, {0x1f6e, 0x399}, {0x1fae}},
    {0x1fa7, {0x1f6f, 0x399}, {0x1faf}},
    {0x1fa8, {0x1f68, 0x399}, {0x1fa8}},
    {0x1fa9, {0x1f69, 0x399}, {0x1fa9}},
    {0x1faa, {0x1f6a, 0x399}, {0x1faa}},
    {0x1fab, {0x1f6b, 0x399}, {0x1fab}},
    {0x1fac, {0x1f6c, 0x399}, {0x1fac}},
    {0x1fad, {0x1f6d, 0x399}, {0x1fad}},
    {0x1fae, {0x1f6e, 0x399}, {0x1fae}},
    {0x1faf, {0x1f6f, 0x399}, {0x1faf}},
    {0x1fb2, {0x1fba, 0x399}, {0x1fba, 0x345}},
    {0x1fb3, {0x391, 0x399}, {0x1fbc}},
    {0x1fb4, {0x386, 0x399}, {0x386, 0x345}},
    {0x1fb6, {0x391, 0x342}, {0x391, 0x342}},
    {0x1fb7, {0x391, 0x342, 0x399}, {0x391, 0x342, 0x345}},
    {0x1fbc, {0x391, 0x399}, {0x1fbc}},
    {0x1fc2, {0x1fca, 0x399}, {0x1fca, 0x345}},
    {0x1fc3, {0x397, 0x399}, {0x1fcc}},
    {0x1fc4, {0x389, 0x399}, {0x389, 0x345}},
    {0x1fc6, {0x397, 0x342}, {0x397, 0x342}},
    {0x1fc7, {0x397, 0x342, 0x399}, {0x397, 0x342, 0x345}},
    {0x1fcc, {0x397, 0x399}, {0x1fcc}},
    {0x1fd2, {0x399, 0x308, 0x300}, {0x399, 0x308, 0x300}},
    {0x1fd3, {0x399, 0x308, 0x301}, {0x399, 0x308, 0x301}},
    {0x1fd6, {0x399, 0x342}, {0x399, 0x342}},
    {0x1fd7, {0x399, 0x308, 0x342}, {0x399, 0x308, 0x342}},
    {0x1fe2, {0x3a5, 0x308, 0x300}, {0x3a5, 0x308, 0x300}},
    {0x1fe3, {0x3a5, 0x308, 0x301}, {0x3a5, 0x308, 0x301}},
    {0x1fe4, {0x3a1, 0x313}, {0x3a1, 0x313}},
    {0x1fe6, {0x3a5, 0x342}, {0x3a5, 0x342}},
    {0x1fe7, {0x3a5, 0x308, 0x342}, {0x3a5, 0x308, 0x342}},
    {0x1ff2, {0x1ffa, 0x399}, {0x1ffa, 0x345}},
    {0x1ff3, {0x3a9, 0x399}, {0x1ffc}},
    {0x1ff4, {0x38f, 0x399}, {0x38f, 0x345}},
    {0x1ff6, {0x3a9, 0x342}, {0x3a9, 0x342}},
    {0x1ff7, {0x3a9, 0x342, 0x399}, {0x3a9, 0x342, 0x345}},
    {0x1ffc, {0x3a9, 0x399}, {0x1ffc}},
    {0xfb00, {0x46, 0x46}, {0x46, 0x66}},
    {0xfb01, {0x46, 0x49}, {0x46, 0x69}},
    {0xfb02, {0x46, 0x4c}, {0x46, 0x6c}},
    {0xfb03, {0x46, 0x46, 0x49}, {0x46, 0x66, 0x69}},
    {0xfb04, {0x46, 0x46, 0x4c}, {0x46, 0x66, 0x6c}},
    {0xfb05, {0x53, 0x54}, {0x53, 0x74}},
    {0xfb06, {0x53, 0x54}, {0x53, 0x74}},
    {0xfb13, {0x544, 0x546}, {0x544, 0x576}},
    {0xfb14, {0x544, 0x535}, {0x544, 0x565}},
    {0xfb15, {0x544, 0x53b}, {0x544, 0x56b}},
    {0xfb16, {0x54e, 0x546}, {0x54e, 0x576}},
    {0xfb17, {0x544, 0x53d}, {0x544, 0x56d}},
};

enum { CODES_MOST = 3, DOTTED_I = 0x130, SIGMA = 0x3a3, FINAL_SIGMA = 0x3c2 };

static const special *find_special(uint32_t code)
{
    size_t low = 0, high = sizeof(specials) / sizeof(specials[0]);

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (specials[middle].code < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < sizeof(specials) / sizeof(specials[0]) && specials[low].code == code
               ? &specials[low]
               : NULL;
}

static utf8proc_category_t category_of(uint32_t code)
{
    return utf8proc_category((utf8proc_int32_t)code);
}

/* Properties Other_Lowercase and Other_Uppercase. */
static bool is_other_lower(uint32_t c)
{
    return c == 0xaa || c == 0xba || (c >= 0x2b0 && c <= 0x2b8) || (c >= 0x2c0 && c <= 0x2c1) ||
           (c >= 0x2e0 && c <= 0x2e4) || c == 0x345 || c == 0x37a || (c >= 0x1d2c && c <= 0x1d6a) ||
           c == 0x1d78 || (c >= 0x1d9b && c <= 0x1dbf) || c == 0x2071 || c == 0x207f ||
           (c >= 0x2090 && c <= 0x209c) || (c >= 0x2170 && c <= 0x217f) ||
           (c >= 0x24d0 && c <= 0x24e9);
}

static bool is_other_upper(uint32_t c)
{
    return (c >= 0x2160 && c <= 0x216f) || (c >= 0x24b6 && c <= 0x24cf);
}

static bool is_lower(uint32_t c)
{
    return category_of(c) == UTF8PROC_CATEGORY_LL || is_other_lower(c);
}

static bool is_upper(uint32_t c)
{
    return category_of(c) == UTF8PROC_CATEGORY_LU || is_other_upper(c);
}

static bool is_cased(uint32_t c)
{
    if (c < 0x80)
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_lower(c) || is_upper(c) || category_of(c) == UTF8PROC_CATEGORY_LT;
}

/* Characters that the rule of the final sigma looks through. */
static bool is_ignorable(uint32_t c)
{
    utf8proc_category_t category = category_of(c);

    return c == '\'' || c == '.' || c == ':' || c == 0xb7 || c == 0x2018 || c == 0x2019 ||
           c == 0x2024 || c == 0x2027 || category == UTF8PROC_CATEGORY_MN ||
           category == UTF8PROC_CATEGORY_ME || category == UTF8PROC_CATEGORY_CF ||
           category == UTF8PROC_CATEGORY_LM || category == UTF8PROC_CATEGORY_SK;
}

static size_t decode(uint32_t *code, const char *data, size_t left)
{
    size_t used = dt_utf8_decode(code, (const unsigned char *)data, left);

    if (used == 0)
        *code = (unsigned char)data[0];
    return used > 0 ? used : 1;
}

/* Whether the sigma at `at` (2 bytes) ends a word. Nothing before `least` counts. */
static bool ends_word(const dt_jinja_text *text, size_t at, size_t least)
{
    bool before = false;
    uint32_t code;
    size_t used;

    for (size_t from = at; from > least;) {
        do
            from--;
        while (from > least && ((unsigned char)text->data[from] & 0xc0) == 0x80);
        (void)decode(&code, text->data + from, text->length - from);
        if (!is_ignorable(code)) {
            before = is_cased(code);
            break;
        }
    }
    if (!before)
        return false;
    for (size_t to = at + 2; to < text->length; to += used) {
        used = decode(&code, text->data + to, text->length - to);
        if (!is_ignorable(code))
            return !is_cased(code);
    }
    return true;
}

static size_t change(uint32_t out[CODES_MOST], uint32_t code, dt_text_case to, bool final)
{
    const special *found = code < 0x80 ? NULL : find_special(code);
    const uint32_t *codes = found == NULL         ? NULL
                            : to == DT_CASE_UPPER ? found->upper
                                                  : found->title;
    size_t count = 0;

    if (to == DT_CASE_LOWER) {
        out[0] = code == SIGMA && final ? FINAL_SIGMA
                                        : (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
        if (code != DOTTED_I)
            return 1;
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    if (codes == NULL) {
        out[0] = (uint32_t)(to == DT_CASE_UPPER ? utf8proc_toupper((utf8proc_int32_t)code)
                                                : utf8proc_totitle((utf8proc_int32_t)code));
        return 1;
    }
    while (count < CODES_MOST && codes[count] != 0) {
        out[count] = codes[count];
        count++;
    }
    return count;
}

/* Where the filter `title` begins a new word: after white space and these. */
static bool separates(const dt_jinja_text *text, size_t at)
{
    return strchr("-({[<", text->data[at]) != NULL || dt_space_at(text->data, text->length, at) > 0;
}

dt_status dt_text_change_case(const dt_jinja_text **out, dt_jinja_run *run,
                              const dt_jinja_text *text, dt_text_case to)
{
    bool begins = true; /* the next character begins a word */
    dt_jinja_sink sink = {.length = 0};
    dt_status st = DT_OK;
    size_t used, least = 0;

    for (size_t at = 0; at < text->length; at += used) {
        uint32_t code, codes[CODES_MOST];
        char utf8[CODES_MOST * DT_UTF8_MAX];
        size_t count, length = 0;
        dt_text_case how = to;

        used = decode(&code, text->data + at, text->length - at);
        if (to == DT_CASE_SWAP)
            how = is_upper(code) ? DT_CASE_LOWER : is_lower(code) ? DT_CASE_UPPER : to;
        else if (to == DT_CASE_WORDS)
            how = begins ? DT_CASE_UPPER : DT_CASE_LOWER;
        else if (to == DT_CASE_TITLE || to == DT_CASE_CAPITALIZE)
            how = begins ? DT_CASE_TITLE : DT_CASE_LOWER;
        if (to == DT_CASE_WORDS && begins)
            least = at + used; /* the rest of a word is changed by itself */
        begins = to == DT_CASE_TITLE   ? !is_cased(code)
                 : to == DT_CASE_WORDS ? separates(text, at)
                                       : false;
        if (how == DT_CASE_SWAP) {
            DT_TRY(dt_sink_add_part(run, &sink, text, at, at + used));
            continue;
        }
        count = change(codes, code, how, code == SIGMA && ends_word(text, at, least));
        for (size_t i = 0; i < count; i++)
            length += dt_utf8_encode(utf8 + length, codes[i]);
        DT_TRY(dt_sink_add(run, &sink, utf8, length, dt_text_origin_at(text, at)));
    }
    *out = dt_sink_text(run, &sink);
out:
    return st;
}

/* --- classes */

static bool is_alpha(uint32_t c)
{
    utf8proc_category_t category = category_of(c);

    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

static bool is_number(uint32_t c)
{
    utf8proc_category_t category = category_of(c);

    return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

/* Decimal digits, and those in circles and in superscript. */
static bool is_digit(uint32_t c)
{
    return category_of(c) == UTF8PROC_CATEGORY_ND || c == 0xb2 || c == 0xb3 || c == 0xb9 ||
           c == 0x2070 || (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089) ||
           (c >= 0x2460 && c <= 0x2468);
}

bool dt_text_has_class(const dt_jinja_text *text, dt_text_class of)
{
    bool cased = false;
    uint32_t code;
    size_t used;

    for (size_t at = 0; at < text->length; at += used) {
        used = decode(&code, text->data + at, text->length - at);
        cased = cased || is_cased(code);
        if ((of == DT_TEXT_ALPHA && !is_alpha(code)) || (of == DT_TEXT_DIGIT && !is_digit(code)) ||
            (of == DT_TEXT_ALNUM && !is_alpha(code) && !is_number(code)) ||
            (of == DT_TEXT_SPACE && dt_space_at(text->data, text->length, at) == 0) ||
            (of == DT_TEXT_LOWER && is_cased(code) && !is_lower(code)) ||
            (of == DT_TEXT_UPPER && is_cased(code) && !is_upper(code)))
            return false;
    }
    return of == DT_TEXT_LOWER || of == DT_TEXT_UPPER ? cased : text->length > 0;
}

bool dt_code_is_printable(uint32_t code)
{
    switch (category_of(code)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return false;
    case UTF8PROC_CATEGORY_ZS:
        return code == ' ';
    default:
        return true;
    }
}
