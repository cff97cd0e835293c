/* python_evaluate: evaluates the expressions of python_values.h, with Python's precedence. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "runner/convert/draft.h"
#include "runner/convert/python_values.h"

enum { DEEPEST = 64, NUMBER_SIZE = 64 };

typedef struct parser {
    const dt_python_file *file;
    const char *at;
    int depth;
} parser;

static bool parse_sum(dt_python_value *out, parser *p);

static void skip_spaces(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        p->at++;
}

static bool take(parser *p, const char *sign)
{
    size_t length = strlen(sign);

    skip_spaces(p);
    if (strncmp(p->at, sign, length) != 0)
        return false;
    p->at += length;
    return true;
}

static bool parse_number(dt_python_value *out, parser *p)
{
    char text[NUMBER_SIZE], *end;
    size_t length = 0;

    for (; isalnum((unsigned char)*p->at) || *p->at == '.' || *p->at == '_' ||
           ((*p->at == '-' || *p->at == '+') && length > 0 && tolower(text[length - 1]) == 'e');
         p->at++) {
        if (*p->at == '_')
            continue;
        if (length + 1 == sizeof(text))
            return false;
        text[length++] = *p->at;
    }
    text[length] = '\0';
    out->kind = DT_PYTHON_NUMBER;
    out->number = strtod(text, &end);
    return length > 0 && *end == '\0' && text[strspn(text, "0123456789.eE+-")] == '\0' &&
           isfinite(out->number);
}

/* Parses adjacent strings, such as 'a' "b", as one text. Supports the escapes of quotes and
 * backslashes only. */
static bool parse_text(dt_python_value *out, parser *p)
{
    dt_strbuf text;
    bool good = true;

    dt_strbuf_init(&text);
    skip_spaces(p);
    while (good && (*p->at == '\'' || *p->at == '"')) {
        char quote = *p->at++;

        good = !(p->at[0] == quote && p->at[1] == quote);
        while (good && *p->at != quote) {
            if (*p->at == '\\')
                p->at++;
            good = *p->at != '\0' && (p->at[-1] != '\\' || strchr("\\'\"", *p->at) != NULL);
            if (good)
                dt_strbuf_add_char(&text, *p->at++);
        }
        p->at += good;
        skip_spaces(p);
    }
    out->kind = DT_PYTHON_TEXT;
    out->text = dt_arena_strdup(p->file->arena, text.data);
    dt_strbuf_release(&text);
    return good;
}

static bool parse_name(dt_python_value *out, parser *p)
{
    size_t length = 0;

    while (isalnum((unsigned char)p->at[length]) || p->at[length] == '_')
        length++;
    *out = (dt_python_value){.kind = DT_PYTHON_UNKNOWN};
    if (length == 4 && strncmp(p->at, "True", 4) == 0)
        *out = (dt_python_value){.kind = DT_PYTHON_BOOL, .number = 1};
    else if (length == 5 && strncmp(p->at, "False", 5) == 0)
        *out = (dt_python_value){.kind = DT_PYTHON_BOOL};
    else if (length == 4 && strncmp(p->at, "None", 4) == 0)
        *out = (dt_python_value){.kind = DT_PYTHON_NONE};
    for (size_t i = p->file->count; i > 0 && out->kind == DT_PYTHON_UNKNOWN; i--) {
        const dt_python_statement *set = &p->file->statements[i - 1];

        if (set->name == NULL || strlen(set->name) != length ||
            memcmp(set->name, p->at, length) != 0)
            continue;
        *out = set->value;
        break;
    }
    p->at += length;
    return length > 0 && out->kind != DT_PYTHON_UNKNOWN;
}

static bool parse_atom(dt_python_value *out, parser *p)
{
    skip_spaces(p);
    if (take(p, "("))
        return parse_sum(out, p) && take(p, ")");
    if (isdigit((unsigned char)*p->at) || *p->at == '.')
        return parse_number(out, p);
    if (*p->at == '\'' || *p->at == '"')
        return parse_text(out, p);
    return parse_name(out, p);
}

static bool parse_unary(dt_python_value *out, parser *p);

/* Parses a power: -2 ** 2 is -4, and 2 ** -1 is 0.5. */
static bool parse_power(dt_python_value *out, parser *p)
{
    dt_python_value exponent;

    if (!parse_atom(out, p))
        return false;
    if (!take(p, "**"))
        return true;
    if (!parse_unary(&exponent, p) || out->kind != DT_PYTHON_NUMBER ||
        exponent.kind != DT_PYTHON_NUMBER)
        return false;
    out->number = pow(out->number, exponent.number);
    return isfinite(out->number);
}

static bool parse_unary(dt_python_value *out, parser *p)
{
    bool good;

    if (++p->depth > DEEPEST)
        return false;
    if (take(p, "-")) {
        good = parse_unary(out, p) && out->kind == DT_PYTHON_NUMBER;
        out->number = -out->number;
    } else if (take(p, "+")) {
        good = parse_unary(out, p) && out->kind == DT_PYTHON_NUMBER;
    } else {
        good = parse_power(out, p);
    }
    p->depth--;
    return good;
}

static bool apply(dt_python_value *out, const dt_python_value *with, char sign)
{
    if (out->kind != DT_PYTHON_NUMBER || with->kind != DT_PYTHON_NUMBER)
        return false;
    if (sign == '+')
        out->number += with->number;
    else if (sign == '-')
        out->number -= with->number;
    else if (sign == '*')
        out->number *= with->number;
    else if (with->number == 0)
        return false;
    else if (sign == '/')
        out->number /= with->number;
    else if (sign == '%')
        out->number -= with->number * floor(out->number / with->number);
    else
        out->number = floor(out->number / with->number);
    return isfinite(out->number);
}

static bool parse_product(dt_python_value *out, parser *p)
{
    dt_python_value with;

    if (!parse_unary(out, p))
        return false;
    for (;;) {
        char sign = take(p, "//")  ? 'f'
                    : take(p, "*") ? '*'
                    : take(p, "/") ? '/'
                    : take(p, "%") ? '%'
                                   : 0;

        if (sign == 0)
            return true;
        if (!parse_unary(&with, p) || !apply(out, &with, sign))
            return false;
    }
}

static bool parse_sum(dt_python_value *out, parser *p)
{
    dt_python_value with;

    if (!parse_product(out, p))
        return false;
    for (;;) {
        char sign = take(p, "+") ? '+' : take(p, "-") ? '-' : 0;

        if (sign == 0)
            return true;
        if (!parse_product(&with, p) || !apply(out, &with, sign))
            return false;
    }
}

bool dt_python_evaluate(dt_python_value *out, const dt_python_file *file, const char *expression)
{
    parser p = {.file = file, .at = expression};
    bool good = parse_sum(out, &p);

    skip_spaces(&p);
    if (good && *p.at == '\0')
        return true;
    *out = (dt_python_value){.kind = DT_PYTHON_UNKNOWN};
    return false;
}

const char *dt_python_text(const dt_python_value *value, dt_arena *arena)
{
    const char *text = NULL;
    dt_strbuf number;

    if (value->kind == DT_PYTHON_TEXT)
        return value->text;
    if (value->kind != DT_PYTHON_NUMBER)
        return value->kind == DT_PYTHON_NONE ? "None" : value->number != 0 ? "True" : "False";
    dt_strbuf_init(&number);
    dt_draft_number_text(&number, value->number);
    text = dt_arena_strdup(arena, number.data);
    dt_strbuf_release(&number);
    return text;
}
