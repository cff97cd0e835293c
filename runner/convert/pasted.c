#include "runner/convert/pasted.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

#include "base/banned.h"

/* --- characters */

static bool is_blank(uint32_t code)
{
    return code == 0xa0 || (code >= 0x2000 && code <= 0x200a) || code == 0x202f || code == 0x205f ||
           code == 0x3000;
}

static bool has_no_width(uint32_t code)
{
    return code == 0xad || (code >= 0x200b && code <= 0x200d) || code == 0x2060 || code == 0xfeff;
}

/* Returns true for a dash into which a word processor turned "--", or "-" before a single letter. */
static bool is_dash(uint32_t code)
{
    return code >= 0x2010 && code <= 0x2015;
}

static void add_code(dt_strbuf *out, const char *at, size_t taken, size_t left, uint32_t code)
{
    bool begins = out->length == 0 || strchr(" \t\n", out->data[out->length - 1]) != NULL;

    if (is_blank(code)) {
        dt_strbuf_add_char(out, ' ');
    } else if (code == 0x201c || code == 0x201d) {
        dt_strbuf_add_char(out, '"');
    } else if (code == 0x2018 || code == 0x2019) {
        dt_strbuf_add_char(out, '\'');
    } else if (is_dash(code) && begins && left > taken && isalpha((unsigned char)at[taken])) {
        bool is_long = left > taken + 1 && (isalnum((unsigned char)at[taken + 1]) ||
                                            strchr("-_", at[taken + 1]) != NULL);

        dt_strbuf_add_str(out, is_long ? "--" : "-");
    } else if (!has_no_width(code)) {
        dt_strbuf_add(out, at, taken);
    }
}

/* Keeps bytes that are not UTF-8: the reader of the script reports them with their line. */
static void straighten(dt_strbuf *out, const char *text, size_t length)
{
    uint32_t code;

    for (size_t at = 0, taken; at < length; at += taken) {
        taken = dt_utf8_decode(&code, (const unsigned char *)text + at, length - at);
        if (taken == 0) {
            taken = 1;
            dt_strbuf_add(out, text + at, 1);
        } else {
            add_code(out, text + at, taken, length - at, code);
        }
    }
}

/* --- lines */

static bool is_fence(const char *line, size_t length)
{
    while (length > 0 && (*line == ' ' || *line == '\t')) {
        line++;
        length--;
    }
    return length >= 3 && (memcmp(line, "```", 3) == 0 || memcmp(line, "~~~", 3) == 0);
}

/* Returns the length of a prompt such as "(env) user@host:~$ "; 0: the line has none. */
static size_t prompt_length(const char *line, size_t length)
{
    size_t at = 0, name;

    while (at < length && (line[at] == ' ' || line[at] == '\t'))
        at++;
    if (at < length && line[at] == '(') {
        const char *end = memchr(line + at, ')', length - at);

        if (end == NULL)
            return 0;
        at = (size_t)(end - line) + 1;
        while (at < length && line[at] == ' ')
            at++;
    }
    name = at;
    while (at < length && strchr("$%#> \t", line[at]) == NULL)
        at++;
    if (at > name && memchr(line + name, '@', at - name) == NULL)
        return 0;
    if (at == name && at < length && line[at] == '#') /* a comment, not a prompt */
        return 0;
    if (at == name && at > 0 && at < length && line[at] == '>') /* a redirection, not a prompt */
        return 0;
    if (at + 1 >= length || strchr("$%#>", line[at]) == NULL || line[at + 1] != ' ')
        return 0;
    return at + 2;
}

static bool has_fences(const char *text, size_t length)
{
    int count = 0;

    for (size_t at = 0, line; at < length; at += line + 1) {
        const char *end = memchr(text + at, '\n', length - at);

        line = end != NULL ? (size_t)(end - text) - at : length - at;
        count += is_fence(text + at, line);
    }
    return count > 1;
}

void dt_pasted_text(dt_strbuf *out, const char *text, size_t length)
{
    bool fenced = has_fences(text, length), inside = false;

    for (size_t at = 0, line; at < length; at += line + 1) {
        const char *end = memchr(text + at, '\n', length - at);
        bool fence = false;

        line = end != NULL ? (size_t)(end - text) - at : length - at;
        if (fenced && (fence = is_fence(text + at, line)))
            inside = !inside;
        if (!fenced || (inside && !fence)) {
            size_t prompt = prompt_length(text + at, line);

            straighten(out, text + at + prompt, line - prompt);
        }
        if (end != NULL)
            dt_strbuf_add_char(out, '\n');
    }
}
