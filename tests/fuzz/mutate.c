#include "tests/fuzz/mutate.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define TAKEN_MAX_BYTES 256
#define TRIES           8 /* tries to find a word, a line or a bracket */

typedef struct piece {
    size_t at, length; /* 0: none */
} piece;

/* xorshift64* (Vigna 2016): good enough to choose bytes. */
static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return *seed * 2685821657736338717u;
}

size_t fuzz_below(uint64_t *seed, size_t limit)
{
    return limit != 0 ? (size_t)(next(seed) % limit) : 0;
}

/* Puts `length` bytes into the input in place of `cut` bytes at `at`. */
static void splice(dt_strbuf *input, size_t at, size_t cut, const char *bytes, size_t length)
{
    dt_strbuf tail, taken;

    dt_strbuf_init(&tail);
    dt_strbuf_init(&taken);
    dt_strbuf_add(&taken, bytes, length); /* may point into the input */
    dt_strbuf_add(&tail, input->data + at + cut, input->length - at - cut);
    input->length = at;
    dt_strbuf_add(input, taken.data, taken.length);
    dt_strbuf_add(input, tail.data, tail.length);
    dt_strbuf_release(&taken);
    dt_strbuf_release(&tail);
}

/* --- blind --- */

static void change_bytes(dt_strbuf *input, const dt_strbuf *other, uint64_t *seed)
{
    static const char *const spice[] = {
        "\t", "\xff",   "&a ",      "*a",           ": ",  "- ",   "[",  "{",    "}",
        "]",  "\"",     "'",        "---\n",        "!!a", "~",    "#",  "|\n",  "0",
        "-1", "1e9",    "null",     "? ",           "\\",  "<<: ", "\r", "\\u0", ",",
        "$",  "${env:", "\xc2\x85", "\xe2\x80\xa8", "%00", "&"};
    size_t at = fuzz_below(seed, input->length + 1), left = input->length - at;
    size_t cut = fuzz_below(seed, left < 32 ? left + 1 : 32);
    size_t from = fuzz_below(seed, other->length + 1);
    size_t taken = fuzz_below(seed, other->length - from + 1);
    const char *word = spice[fuzz_below(seed, sizeof(spice) / sizeof(spice[0]))];
    char byte = (char)next(seed);

    switch (next(seed) % 6) {
    case 0: /* a byte is changed */
        splice(input, at, left > 0 ? 1 : 0, &byte, 1);
        break;
    case 1: /* a piece is removed */
        splice(input, at, cut, "", 0);
        break;
    case 2: /* a piece is doubled */
        splice(input, at, 0, input->data + at, cut);
        break;
    case 3: /* a meaningful token is inserted */
        splice(input, at, 0, word, strlen(word));
        break;
    case 4: /* a meaningful token replaces a piece */
        splice(input, at, cut, word, strlen(word));
        break;
    default: /* a piece of another file is inserted */
        splice(input, at, cut, other->data + from,
               taken < TAKEN_MAX_BYTES ? taken : TAKEN_MAX_BYTES);
    }
}

/* --- words --- */

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Finds a word or a number: its first and last byte. */
static piece word_of(const dt_strbuf *text, bool number, uint64_t *seed)
{
    for (int i = 0; i < TRIES; i++) {
        size_t at = fuzz_below(seed, text->length), end;

        while (at < text->length && !is_word_byte(text->data[at]))
            at++;
        while (at > 0 && is_word_byte(text->data[at - 1]))
            at--;
        for (end = at; end < text->length && is_word_byte(text->data[end]); end++)
            continue;
        if (end > at && (!number || isdigit((unsigned char)text->data[at])))
            return (piece){at, end - at};
    }
    return (piece){0};
}

static void change_word(dt_strbuf *input, const dt_strbuf *other, uint64_t *seed)
{
    piece here = word_of(input, false, seed), there = word_of(other, false, seed);

    splice(input, here.at, here.length, other->data + there.at, there.length);
}

static void change_number(dt_strbuf *input, uint64_t *seed)
{
    static const char *const edges[] = {"0",
                                        "1",
                                        "-1",
                                        "2",
                                        "127",
                                        "255",
                                        "256",
                                        "65535",
                                        "2147483647",
                                        "2147483648",
                                        "-2147483648",
                                        "4294967296",
                                        "9007199254740993",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "18446744073709551616",
                                        "1e308",
                                        "1e-320",
                                        "0.5",
                                        "0x10",
                                        "1_0",
                                        "007",
                                        "1e400",
                                        "nan",
                                        ".",
                                        "10m",
                                        "2GiB"};
    const char *edge = edges[fuzz_below(seed, sizeof(edges) / sizeof(edges[0]))];
    piece here = word_of(input, true, seed);

    splice(input, here.at, here.length, edge, strlen(edge));
}

/* --- lines --- */

static piece line_of(const dt_strbuf *text, uint64_t *seed)
{
    size_t at = fuzz_below(seed, text->length), end = at;

    while (at > 0 && text->data[at - 1] != '\n')
        at--;
    while (end < text->length && text->data[end] != '\n')
        end++;
    return (piece){at, end - at + (end < text->length ? 1 : 0)};
}

static size_t depth_of(const dt_strbuf *text, piece line)
{
    size_t depth = 0;

    while (depth < line.length && text->data[line.at + depth] == ' ')
        depth++;
    return depth;
}

static void change_line(dt_strbuf *input, const dt_strbuf *other, uint64_t *seed)
{
    piece here = line_of(input, seed), there = line_of(other, seed);

    switch (next(seed) % 5) {
    case 0:
        splice(input, here.at, here.length, "", 0);
        break;
    case 1: /* doubled, or moved to where another line begins */
        splice(input, line_of(input, seed).at, 0, input->data + here.at, here.length);
        break;
    case 2: /* indented more, or less */
        if (next(seed) % 2 == 0)
            splice(input, here.at, 0, "  ", 2);
        else
            splice(input, here.at, depth_of(input, here), "", 0);
        break;
    case 3: /* a line of another file with the same indentation */
        for (int i = 0; i < TRIES && depth_of(other, there) != depth_of(input, here); i++)
            there = line_of(other, seed);
        splice(input, here.at, 0, other->data + there.at, there.length);
        break;
    default:
        splice(input, here.at, here.length, other->data + there.at, there.length);
    }
}

/* --- brackets --- */

/* Finds a bracket, its contents, and the closing bracket. */
static piece brackets_of(const dt_strbuf *text, uint64_t *seed)
{
    size_t at = fuzz_below(seed, text->length), depth = 0;

    while (at < text->length && strchr("[{(", text->data[at]) == NULL)
        at++;
    for (size_t end = at; end < text->length; end++) {
        depth += text->data[end] != '\0' && strchr("[{(", text->data[end]) != NULL;
        if (text->data[end] != '\0' && strchr("]})", text->data[end]) != NULL && --depth == 0)
            return (piece){at, end + 1 - at};
    }
    return (piece){0};
}

static void change_brackets(dt_strbuf *input, const dt_strbuf *other, uint64_t *seed)
{
    piece here = brackets_of(input, seed), there = brackets_of(other, seed);
    size_t length = there.length < TAKEN_MAX_BYTES ? there.length : 0;

    switch (next(seed) % 4) {
    case 0: /* its contents are removed */
        if (here.length > 2)
            splice(input, here.at + 1, here.length - 2, "", 0);
        break;
    case 1: /* replaced by those of another file */
        splice(input, here.at, here.length, other->data + there.at, length);
        break;
    case 2: /* doubled next to it */
        splice(input, here.at + here.length, 0, ",", 1);
        splice(input, here.at + here.length + 1, 0, input->data + here.at, here.length);
        break;
    default: /* nested deeper */
        splice(input, here.at + here.length, 0, "]", 1);
        splice(input, here.at, 0, "[", 1);
    }
}

/* --- bytes that are numbers --- */

/* Little-endian, as in headers; the first bytes of a file are chosen more often. */
static void change_binary(dt_strbuf *input, uint64_t *seed)
{
    static const uint64_t edges[] = {0,          1,
                                     2,          0x7f,
                                     0xff,       0x7fff,
                                     0xffff,     0x7fffffff,
                                     0x80000000, 0xffffffff,
                                     INT64_MAX,  (uint64_t)1 << 63,
                                     UINT64_MAX, UINT64_MAX - 7};
    size_t width = (size_t)1 << fuzz_below(seed, 4);
    size_t reach = next(seed) % 2 == 0 && input->length > 64 ? 64 : input->length;
    uint64_t value = edges[fuzz_below(seed, sizeof(edges) / sizeof(edges[0]))];
    char bytes[8];
    size_t at;

    if (input->length < width)
        return;
    at = fuzz_below(seed, reach < width ? 1 : reach - width + 1);
    if (next(seed) % 3 == 0)
        value = (uint64_t)input->length + fuzz_below(seed, 17) - 8;
    for (size_t i = 0; i < width; i++)
        bytes[i] = (char)(value >> 8 * i);
    splice(input, at, width, bytes, width);
}

void fuzz_mutate(dt_strbuf *input, const dt_strbuf *other, uint64_t *seed)
{
    switch (next(seed) % 10) {
    case 0:
        change_binary(input, seed);
        break;
    case 1:
        change_brackets(input, other, seed);
        break;
    case 2:
        change_number(input, seed);
        break;
    case 3:
    case 4:
        change_word(input, other, seed);
        break;
    case 5:
    case 6:
        change_line(input, other, seed);
        break;
    default:
        change_bytes(input, other, seed);
    }
    if (input->length > FUZZ_INPUT_MAX_BYTES)
        splice(input, FUZZ_INPUT_MAX_BYTES, input->length - FUZZ_INPUT_MAX_BYTES, "", 0);
}
