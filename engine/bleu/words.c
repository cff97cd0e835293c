#include "engine/bleu/bleu.h"

#include <stdint.h>
#include <string.h>

#include "base/display.h"

static const char *const names[] = {
    [DT_BLEU_WORDS_13A] = "13a", [DT_BLEU_WORDS_NONE] = "none", [DT_BLEU_WORDS_CHAR] = "char"};

const char *dt_bleu_words_name(dt_bleu_words words)
{
    return names[words];
}

bool dt_bleu_words_find(dt_bleu_words *out, const char *name)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (dt_bleu_words)i;
            return true;
        }
    return false;
}

/* --- 13a: one pass over the text for each rule of mteval-v13a, in its order */

static void replace(dt_strbuf *text, dt_strbuf *room, const char *from, const char *to)
{
    size_t length = strlen(from), at = 0;
    dt_strbuf whole = *text;

    dt_strbuf_reset(room);
    while (at < text->length) {
        if (text->length - at >= length && memcmp(text->data + at, from, length) == 0) {
            dt_strbuf_add_str(room, to);
            at += length;
        } else {
            dt_strbuf_add_char(room, text->data[at++]);
        }
    }
    *text = *room;
    *room = whole;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_point(char c)
{
    return c == '.' || c == ',';
}

/* ASCII punctuation, except characters that can be part of a word or number: apostrophe, comma,
 * hyphen, period. */
static bool is_punctuation(char c)
{
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
           (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

static bool no_digit(char c)
{
    return !is_digit(c);
}

static bool is_dash(char c)
{
    return c == '-';
}

/* Where a byte of `first` and a byte of `second` are adjacent, insert a space between them, and
 * optionally one before or after them. Pairs do not overlap. */
typedef struct pair_rule {
    bool (*first)(char c);
    bool (*second)(char c);
    bool before, behind;
} pair_rule;

static void part(dt_strbuf *text, dt_strbuf *room, const pair_rule *rule)
{
    dt_strbuf whole = *text;

    dt_strbuf_reset(room);
    for (size_t at = 0; at < text->length; at++) {
        const char *bytes = text->data + at;

        if (at + 1 == text->length || !rule->first(bytes[0]) || !rule->second(bytes[1])) {
            dt_strbuf_add_char(room, bytes[0]);
            continue;
        }
        if (rule->before)
            dt_strbuf_add_char(room, ' ');
        dt_strbuf_add_char(room, bytes[0]);
        dt_strbuf_add_char(room, ' ');
        dt_strbuf_add_char(room, bytes[1]);
        if (rule->behind)
            dt_strbuf_add_char(room, ' ');
        at++;
    }
    *text = *room;
    *room = whole;
}

static void part_punctuation(dt_strbuf *text, dt_strbuf *room)
{
    dt_strbuf whole = *text;

    dt_strbuf_reset(room);
    for (size_t at = 0; at < text->length; at++) {
        bool alone = is_punctuation(text->data[at]);

        if (alone)
            dt_strbuf_add_char(room, ' ');
        dt_strbuf_add_char(room, text->data[at]);
        if (alone)
            dt_strbuf_add_char(room, ' ');
    }
    *text = *room;
    *room = whole;
}

static void part_13a(dt_strbuf *text, dt_strbuf *room)
{
    static const pair_rule rules[] = {{no_digit, is_point, .behind = true},
                                      {is_point, no_digit, .before = true},
                                      {is_digit, is_dash, .behind = true}};

    replace(text, room, "<skipped>", "");
    replace(text, room, "&quot;", "\"");
    replace(text, room, "&amp;", "&");
    replace(text, room, "&lt;", "<");
    replace(text, room, "&gt;", ">");
    dt_strbuf_reset(room);
    dt_strbuf_add_char(room, ' ');
    dt_strbuf_add(room, text->data, text->length);
    dt_strbuf_add_char(room, ' ');
    dt_strbuf_reset(text);
    dt_strbuf_add(text, room->data, room->length);
    part_punctuation(text, room);
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        part(text, room, &rules[i]);
}

/* --- spaces */

static bool is_space(uint32_t code)
{
    return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20) || code == 0x85 ||
           code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

static size_t split(dt_strbuf *out, const char *text, size_t length, bool each)
{
    bool inside = false;
    size_t count = 0;

    for (size_t at = 0; at < length;) {
        uint32_t code = 0;
        size_t bytes = dt_utf8_decode(&code, (const unsigned char *)text + at, length - at);
        bool space = bytes > 0 && is_space(code);

        bytes += bytes == 0;
        if (inside && (space || each))
            dt_strbuf_add_char(out, '\n');
        if (!space) {
            count += each || !inside;
            dt_strbuf_add(out, text + at, bytes);
        }
        inside = !space;
        at += bytes;
    }
    if (inside)
        dt_strbuf_add_char(out, '\n');
    return count;
}

size_t dt_bleu_words_split(dt_strbuf *out, dt_bleu_words words, const char *line, size_t length)
{
    dt_strbuf text, room;
    size_t count;

    if (words != DT_BLEU_WORDS_13A)
        return split(out, line, length, words == DT_BLEU_WORDS_CHAR);
    dt_strbuf_init(&text);
    dt_strbuf_init(&room);
    dt_strbuf_add(&text, line, length);
    part_13a(&text, &room);
    count = split(out, text.data, text.length, false);
    dt_strbuf_release(&text);
    dt_strbuf_release(&room);
    return count;
}
