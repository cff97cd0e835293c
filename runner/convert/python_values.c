/* python_values: reads the assignments of a Python settings file without running it, and evaluates their
 * expressions with Python's precedence. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "runner/convert/convert_int.h"
#include "runner/convert/flags.h"
#include "runner/convert/script.h"

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

void dt_python_init(dt_python_file *out, dt_arena *arena)
{
    *out = (dt_python_file){.arena = arena};
}

static void add(dt_python_file *file, const dt_python_statement *statement)
{
    file->statements = dt_arena_array_room(file->arena, file->statements, file->count + 1,
                                           &file->capacity, sizeof(*statement));
    file->statements[file->count++] = *statement;
}

/* Returns true for a statement that is only a string, which acts as a comment. */
static bool is_text_alone(const dt_python_file *file, const char *statement)
{
    dt_python_value value;

    return (statement[0] == '"' || statement[0] == '\'') &&
           (strncmp(statement, "\"\"\"", 3) == 0 || strncmp(statement, "'''", 3) == 0 ||
            dt_python_evaluate(&value, file, statement));
}

/* Returns the name in "NAME = ", "NAME += "; *value: the text after "=", NULL if it is not a plain assignment. */
static size_t find_name(const char **value, const char *statement)
{
    size_t length = 0, sign;

    *value = NULL;
    if (isdigit((unsigned char)statement[0]))
        return 0;
    while (isalnum((unsigned char)statement[length]) || statement[length] == '_')
        length++;
    sign = length + strspn(statement + length, " \t");
    if (statement[sign] == '=' && statement[sign + 1] != '=') {
        *value = statement + sign + 1;
        return length;
    }
    if (strspn(statement + sign, "+-*/%|&^<>@:") == 0)
        return 0;
    return strchr(statement + sign, '=') != NULL ? length : 0;
}

static void take_statement(dt_python_file *file, const char *text, int line, bool indented)
{
    dt_python_statement out = {.line = line, .shown = dt_arena_strdup(file->arena, text)};
    const char *value;
    size_t length;

    if (text[0] == '\0' || is_text_alone(file, text))
        return;
    length = find_name(&value, text);
    if (length > 0)
        out.name = dt_arena_strndup(file->arena, text, length);
    if (length > 0 && value != NULL && !indented)
        (void)dt_python_evaluate(&out.value, file, value);
    add(file, &out);
}

/* --- statements --- */

typedef struct scanner {
    const char *at, *end, *source;
    int line;
    dt_strbuf text; /* the statement, on one line */
    dt_error *err;
} scanner;

static void take_char(scanner *s)
{
    s->line += *s->at == '\n';
    dt_strbuf_add_char(&s->text, *s->at == '\n' || *s->at == '\r' ? ' ' : *s->at);
    s->at++;
}

static dt_status take_string(scanner *s)
{
    char quote = *s->at;
    bool triple = s->end - s->at >= 3 && s->at[1] == quote && s->at[2] == quote;
    int line = s->line, left = triple ? 3 : 1;

    for (int i = 0; i < left; i++)
        take_char(s);
    while (s->at < s->end && (triple || *s->at != '\n')) {
        bool closes = triple ? s->end - s->at >= 3 && s->at[0] == quote && s->at[1] == quote &&
                                   s->at[2] == quote
                             : *s->at == quote;

        if (*s->at == '\\' && s->end - s->at >= 2)
            take_char(s);
        else if (closes) {
            for (int i = 0; i < left; i++)
                take_char(s);
            return DT_OK;
        }
        take_char(s);
    }
    return DT_FAIL(s->err, DT_ERR_USAGE, "%s:%d: a string is not closed", s->source, line);
}

/* Reads a statement up to the end of its line; brackets and backslashes join lines. */
static dt_status scan_statement(scanner *s)
{
    int depth = 0, line = s->line;

    while (s->at < s->end) {
        char c = *s->at;

        if (c == '#') {
            while (s->at < s->end && *s->at != '\n')
                s->at++;
            continue;
        }
        if (c == '\'' || c == '"') {
            if (take_string(s) != DT_OK)
                return s->err != NULL ? s->err->code : DT_ERR_USAGE;
            continue;
        }
        if (depth == 0 && (c == '\n' || c == ';'))
            break;
        if (c == '\\' && s->end - s->at >= 2 && s->at[1] == '\n') {
            s->at++;
            take_char(s);
            continue;
        }
        depth += strchr("([{", c) != NULL ? 1 : strchr(")]}", c) != NULL && depth > 0 ? -1 : 0;
        take_char(s);
    }
    if (depth > 0)
        return DT_FAIL(s->err, DT_ERR_USAGE, "%s:%d: a parenthesis is not closed", s->source, line);
    while (s->text.length > 0 && strchr(" \t", s->text.data[s->text.length - 1]) != NULL)
        s->text.data[--s->text.length] = '\0';
    return DT_OK;
}

dt_status dt_python_read(dt_python_file *file, const char *text, size_t length, const char *source,
                         dt_error *err)
{
    dt_error own = DT_ERROR_INIT;
    scanner s = {.at = text,
                 .end = text + length,
                 .source = source,
                 .line = 1,
                 .err = err != NULL ? err : &own};
    dt_status st = DT_OK;

    st = dt_shell_check_text(text, length, source, s.err);
    dt_strbuf_init(&s.text);
    while (st == DT_OK && s.at < s.end) {
        size_t indent = 0;
        int line = s.line;

        while (s.at < s.end && (*s.at == ' ' || *s.at == '\t')) {
            indent++;
            s.at++;
        }
        st = scan_statement(&s);
        if (st == DT_OK)
            take_statement(file, s.text.data, line, indent > 0);
        dt_strbuf_reset(&s.text);
        if (s.at < s.end) {
            s.line += *s.at == '\n';
            s.at++;
            while (s.at[-1] == ';' && s.at < s.end && *s.at == ' ')
                s.at++;
        }
    }
    dt_strbuf_release(&s.text);
    return st;
}
