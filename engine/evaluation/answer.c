/* answer: compares a generated text with answers, and finds white space and words as Python does. */
#include <ctype.h>
#include <regex.h>
#include <string.h>

#include "base/display.h"
#include "engine/evaluation/evaluation.h"

enum { GROUPS = 10, REASON_BYTES = 200 };

/* --- white space */

/* As Python's str.isspace(). */
static bool is_blank(uint32_t code)
{
    return (code >= 9 && code <= 13) || (code >= 0x1c && code <= 0x20) || code == 0x85 ||
           code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

/* Returns the bytes of the character at `at`; *blank: it is white space. */
static size_t step(bool *blank, const char *at, size_t left)
{
    uint32_t code = 0;
    size_t bytes = dt_utf8_decode(&code, (const unsigned char *)at, left);

    *blank = bytes > 0 && is_blank(code);
    return bytes > 0 ? bytes : 1;
}

size_t dt_evaluation_blank_end(const char *text, size_t length)
{
    size_t begin = 0; /* of the white space at the end */
    bool blank;

    for (size_t at = 0; at < length;) {
        at += step(&blank, text + at, length - at);
        begin = blank ? begin : at;
    }
    return length - begin;
}

int64_t dt_evaluation_words(const char *text, size_t length)
{
    bool blank, before = false;
    int64_t words = 1; /* white space at an end leaves an empty word there */

    for (size_t at = 0; at < length;) {
        at += step(&blank, text + at, length - at);
        words += blank && !before;
        before = blank;
    }
    return words;
}

int64_t dt_evaluation_characters(const char *text)
{
    int64_t count = 0;

    for (; *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

/* --- bytes that are not UTF-8 */

/* Bytes at `at` that begin a character which is then broken off (Unicode 15, table 3-7), at least one. */
static size_t broken_off(const unsigned char *at, size_t left)
{
    static const struct {
        unsigned char lead_low, lead_high, low, high; /* of the first byte, and of the second */
        size_t more;
    } forms[] = {{0xc2, 0xdf, 0x80, 0xbf, 1}, {0xe0, 0xe0, 0xa0, 0xbf, 2},
                 {0xe1, 0xec, 0x80, 0xbf, 2}, {0xed, 0xed, 0x80, 0x9f, 2},
                 {0xee, 0xef, 0x80, 0xbf, 2}, {0xf0, 0xf0, 0x90, 0xbf, 3},
                 {0xf1, 0xf3, 0x80, 0xbf, 3}, {0xf4, 0xf4, 0x80, 0x8f, 3}};
    size_t n = 1;

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (at[0] < forms[i].lead_low || at[0] > forms[i].lead_high)
            continue;
        if (n < left && at[n] >= forms[i].low && at[n] <= forms[i].high)
            n++;
        while (n > 1 && n <= forms[i].more && n < left && (at[n] & 0xc0) == 0x80)
            n++;
    }
    return n;
}

void dt_evaluation_add_valid(dt_strbuf *out, const char *text, size_t length)
{
    uint32_t code;

    for (size_t at = 0, bytes; at < length; at += bytes) {
        const unsigned char *from = (const unsigned char *)text + at;

        bytes = dt_utf8_decode(&code, from, length - at);
        if (bytes > 0) {
            dt_strbuf_add(out, from, bytes);
        } else {
            bytes = broken_off(from, length - at);
            dt_strbuf_add_str(out, DT_UTF8_REPLACEMENT);
        }
    }
}

/* --- expressions */

dt_status dt_evaluation_check_expression(const char *expression, dt_error *err)
{
    char reason[REASON_BYTES];
    regex_t regex;
    int code = regcomp(&regex, expression, REG_EXTENDED);

    if (code == 0) {
        regfree(&regex);
        return DT_OK;
    }
    regerror(code, &regex, reason, sizeof(reason));
    return DT_FAIL(err, DT_ERR_USAGE, "'%.100s' is not a POSIX extended regular expression: %s",
                   expression, reason);
}

/* Returns the next match at or after text[*at], and moves *at behind it. */
static bool find(regmatch_t *match, const regex_t *regex, const char *text, size_t *at)
{
    size_t from = *at;

    if (from > strlen(text) ||
        regexec(regex, text + from, GROUPS, match, from > 0 ? REG_NOTBOL : 0) != 0)
        return false;
    for (size_t i = 0; i < GROUPS; i++)
        if (match[i].rm_so >= 0) {
            match[i].rm_so += (regoff_t)from;
            match[i].rm_eo += (regoff_t)from;
        }
    *at = (size_t)match[0].rm_eo + (match[0].rm_eo == match[0].rm_so);
    return true;
}

/* The first group that is not empty; without groups the whole match. */
static regmatch_t group_of(const regex_t *regex, const regmatch_t *match)
{
    for (size_t i = 1; i <= regex->re_nsub && i < GROUPS; i++)
        if (match[i].rm_so >= 0 && match[i].rm_eo > match[i].rm_so)
            return match[i];
    return regex->re_nsub == 0 ? match[0] : (regmatch_t){-1, -1};
}

void dt_evaluation_add_stripped(dt_strbuf *out, const char *text, size_t length)
{
    size_t bytes;
    bool blank = true;

    length -= dt_evaluation_blank_end(text, length);
    while (length > 0) {
        bytes = step(&blank, text, length);
        if (!blank)
            break;
        text += bytes;
        length -= bytes;
    }
    dt_strbuf_add(out, text, length);
}

void dt_evaluation_extract(dt_strbuf *out, const dt_evaluation_compare *how, const char *text)
{
    regmatch_t match[GROUPS], group = {-1, -1};
    size_t at = 0;
    regex_t regex;

    if (how->extract[0] == '\0') {
        dt_strbuf_add_str(out, text);
        return;
    }
    DT_ASSERT(regcomp(&regex, how->extract, REG_EXTENDED) == 0); /* checked when it was read */
    while (find(match, &regex, text, &at)) {
        group = group_of(&regex, match);
        if (!how->extract_last)
            break;
    }
    if (group.rm_so >= 0)
        dt_evaluation_add_stripped(out, text + group.rm_so, (size_t)(group.rm_eo - group.rm_so));
    else
        dt_strbuf_add_str(out, "[invalid]");
    regfree(&regex);
}

/* Appends the text without the matches of the expression. */
static void add_without(dt_strbuf *out, const char *text, const char *expression)
{
    regmatch_t match[GROUPS];
    size_t at = 0, kept = 0;
    regex_t regex;

    DT_ASSERT(regcomp(&regex, expression, REG_EXTENDED) == 0);
    while (find(match, &regex, text, &at)) {
        dt_strbuf_add(out, text + kept, (size_t)match[0].rm_so - kept);
        kept = (size_t)match[0].rm_eo;
    }
    dt_strbuf_add_str(out, text + kept);
    regfree(&regex);
}

/* Appends the text as it is compared. Case and punctuation are those of ASCII. */
static void add_normal(dt_strbuf *out, const dt_evaluation_compare *how, const char *text)
{
    dt_strbuf from, to, swap;

    dt_strbuf_init(&from);
    dt_strbuf_init(&to);
    dt_strbuf_add_str(&from, text);
    for (size_t i = 0; i < how->remove.count; i++) {
        dt_strbuf_reset(&to);
        add_without(&to, from.data, how->remove.items[i]);
        swap = from;
        from = to;
        to = swap;
    }
    for (size_t i = 0; i < from.length; i++) {
        unsigned char c = (unsigned char)from.data[i];

        if (how->ignore_punctuation && c < 0x80 && ispunct(c))
            continue;
        dt_strbuf_add_char(out, (char)(how->ignore_case && c < 0x80 ? tolower(c) : c));
    }
    dt_strbuf_release(&from);
    dt_strbuf_release(&to);
}

bool dt_evaluation_matches(const dt_evaluation_row *row, const char *extracted)
{
    dt_strbuf text, answer;
    bool same = false;

    dt_strbuf_init(&text);
    dt_strbuf_init(&answer);
    add_normal(&text, &row->compare, extracted);
    for (size_t i = 0; i < row->answers.count && !same; i++) {
        dt_strbuf_reset(&answer);
        add_normal(&answer, &row->compare, row->answers.items[i]);
        same = text.length == answer.length && memcmp(text.data, answer.data, text.length) == 0;
    }
    dt_strbuf_release(&text);
    dt_strbuf_release(&answer);
    return same;
}
