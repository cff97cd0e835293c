#include "runner/convert/python_values.h"

#include <ctype.h>
#include <string.h>

#include "base/strbuf.h"
#include "runner/convert/words.h"

void dt_python_init(dt_python_file *out, dt_arena *arena)
{
    *out = (dt_python_file){.arena = arena};
}

static void add(dt_python_file *file, const dt_python_statement *statement)
{
    if (file->count == file->capacity) {
        size_t larger = file->capacity > 0 ? file->capacity * 2 : 64;
        dt_python_statement *moved = dt_arena_alloc_array(file->arena, larger, sizeof(moved[0]));

        if (file->count > 0)
            memcpy(moved, file->statements, file->count * sizeof(moved[0]));
        file->statements = moved;
        file->capacity = larger;
    }
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
