#include "engine/tokens/split.h"

#include <string.h>

#include "engine/tokens/unicode.h"

#include "base/banned.h"

typedef const unsigned char *place;

#define N3 "\\p{N}{1,3}"
#define N1 "\\p{N}"
#define LATER(numbers)                                                    \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct {
    const char *expression;
    dt_split_kind kind;
} known[] = {
    {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     DT_SPLIT_GPT2},
    {LATER(N3), DT_SPLIT_LLAMA3},
    {LATER(N1), DT_SPLIT_QWEN},
};

bool dt_split_find(dt_split_kind *out, const char *expression)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i].expression, expression) == 0) {
            *out = known[i].kind;
            return true;
        }
    return false;
}

const char *dt_split_expression(dt_split_kind kind)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].kind == kind)
            return known[i].expression;
    return NULL;
}

/* clang-format off */
#define O DT_CODE_OTHER
#define L DT_CODE_LETTER
#define N DT_CODE_NUMBER
#define S DT_CODE_SPACE
static const unsigned char ascii[128] = {
    O, O, O, O, O, O, O, O, O, S, S, S, S, S, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O,
    S, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, N, N, N, N, N, N, N, N, N, N, O, O, O, O, O, O,
    O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O,
    O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O};
#undef O
#undef L
#undef N
#undef S
/* clang-format on */

static inline dt_code_class look(place at, size_t *used)
{
    if (*at < 0x80) {
        *used = 1;
        return (dt_code_class)ascii[*at];
    }
    return dt_code_class_of(dt_code_at(at, used));
}

/* Behind the last one of a class in a row. */
static inline place skip(place at, place end, dt_code_class wanted)
{
    size_t used;

    for (; at < end; at += used)
        if (look(at, &used) != wanted)
            break;
    return at;
}

static inline bool is_break(unsigned char c)
{
    return c == '\r' || c == '\n';
}

static inline unsigned char lower(unsigned char c, bool any_case)
{
    return any_case && c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}

/* 's, 't, 're, 've, 'm, 'll, 'd at a quote: where it ends, NULL where there is none. In any case
 * U+017F is an s. */
static place contraction(place at, place end, bool any_case)
{
    size_t left = (size_t)(end - at);
    unsigned char one = left > 1 ? lower(at[1], any_case) : 0;
    unsigned char two = left > 2 ? lower(at[2], any_case) : 0;

    if (one == 's' || one == 't' || one == 'm' || one == 'd')
        return at + 2;
    if ((one == 'r' && two == 'e') || (one == 'v' && two == 'e') || (one == 'l' && two == 'l'))
        return at + 3;
    if (any_case && one == 0xc5 && two == 0xbf)
        return at + 3;
    return NULL;
}

/* \s+(?!\S)|\s+ at a space: all of them, but for the last one where something follows. */
static place spaces(place at, place end)
{
    place behind = at, last = at;
    size_t used;

    for (; behind < end && look(behind, &used) == DT_CODE_SPACE; behind += used)
        last = behind;
    return behind < end && last > at ? last : behind;
}

static place gpt2(place at, place end)
{
    place start = at, behind;
    dt_code_class class;
    size_t used;

    if (*at == '\'' && (behind = contraction(at, end, false)) != NULL)
        return behind;
    if (*at == ' ' && at + 1 < end)
        start++;
    class = look(start, &used);
    return class == DT_CODE_SPACE ? spaces(at, end) : skip(start + used, end, class);
}

/* \s*[\r\n]+: up to the last line break of the spaces; NULL without one. */
static place line_breaks(place at, place end)
{
    place behind = NULL;
    size_t used;

    for (; at < end && look(at, &used) == DT_CODE_SPACE; at += used)
        if (is_break(*at))
            behind = at + 1;
    return behind;
}

static place numbers(place at, place end, int most)
{
    size_t used;

    for (; most > 0 && at < end && look(at, &used) == DT_CODE_NUMBER; most--)
        at += used;
    return at;
}

/* ` ?[^\s\p{L}\p{N}]+[\r\n]*`: NULL where it is something else. */
static place signs(place at, place end)
{
    size_t used;

    if (*at == ' ')
        at++;
    if (at == end || look(at, &used) != DT_CODE_OTHER)
        return NULL;
    at = skip(at + used, end, DT_CODE_OTHER);
    while (at < end && is_break(*at))
        at++;
    return at;
}

static place llama3(place at, place end, int most_numbers, bool end_is_one)
{
    size_t used, next_used;
    dt_code_class class;
    place behind;

    if (*at == '\'' && (behind = contraction(at, end, true)) != NULL)
        return behind;
    class = look(at, &used);
    if (class == DT_CODE_LETTER)
        return skip(at + used, end, DT_CODE_LETTER);
    if (class == DT_CODE_NUMBER)
        return numbers(at, end, most_numbers);
    if (!is_break(*at) && at + used < end && look(at + used, &next_used) == DT_CODE_LETTER)
        return skip(at + used + next_used, end, DT_CODE_LETTER);
    if ((behind = signs(at, end)) != NULL)
        return behind;
    if (end_is_one && skip(at, end, DT_CODE_SPACE) == end)
        return end;
    if ((behind = line_breaks(at, end)) != NULL)
        return behind;
    return spaces(at, end);
}

static place next_word(dt_split_kind kind, place at, place end)
{
    switch (kind) {
    case DT_SPLIT_GPT2:
        return gpt2(at, end);
    case DT_SPLIT_LLAMA3:
        return llama3(at, end, 3, false);
    case DT_SPLIT_QWEN:
        return llama3(at, end, 1, false);
    case DT_SPLIT_CL100K:
        return llama3(at, end, 3, true);
    default:
        return end;
    }
}

/* Where the text without numbers ends that begins here. */
static place first_number(place at, place end)
{
    size_t used;

    for (; at < end; at += used)
        if (look(at, &used) == DT_CODE_NUMBER)
            break;
    return at;
}

size_t dt_split_next(const dt_split *split, const unsigned char *text, size_t length)
{
    place end = text + length;
    size_t used;

    if (split->digits) {
        if (look(text, &used) == DT_CODE_NUMBER)
            return used;
        end = first_number(text, end);
    }
    return (size_t)(next_word(split->kind, text, end) - text);
}
