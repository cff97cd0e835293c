/* command_line_expand: expands what begins with '$' or '`' in a script. */
#include <ctype.h>
#include <string.h>

#include "runner/convert/command_line_int.h"

#include "base/banned.h"

enum { DEEPEST = 32 }; /* levels of nested brackets */

static void begin_word(dt_shell_scanner *s)
{
    if (!s->in_word)
        s->word_line = s->line;
    s->in_word = true;
}

/* Adds text that only a shell can expand, unchanged, and marks the word as open. */
static void add_open(dt_shell_scanner *s, const char *end)
{
    begin_word(s);
    s->open = true;
    for (const char *c = s->at; c < end; c++) {
        s->line += *c == '\n';
        dt_strbuf_add_char(&s->word, *c == '\n' || *c == '\r' ? ' ' : *c);
    }
    s->at = end;
}

/* Returns the position after the bracket that closes the one at `at`, or `end`. Ignores quotes. */
static const char *behind_bracket(const char *at, const char *end)
{
    char open = *at, close = open == '(' ? ')' : '}';
    int depth = 0;

    for (; at < end; at++) {
        depth += *at == open ? 1 : *at == close ? -1 : 0;
        if (depth == 0)
            return at + 1;
        if (depth > DEEPEST)
            break;
    }
    return end;
}

/* Adds the value of a variable. Outside quotes it is split into words at blanks, as in a shell. */
static dt_status add_value(dt_shell_scanner *s, const dt_shell_word *value, bool in_quotes)
{
    dt_status st;

    if (in_quotes)
        begin_word(s);
    if (s->word.length + strlen(value->text) > DT_SHELL_WORD_MAX)
        return DT_FAIL(s->err, DT_ERR_USAGE, "%s:%d: a word is longer than %d bytes", s->source,
                       s->line, DT_SHELL_WORD_MAX);
    for (const char *c = value->text; *c != '\0'; c++) {
        if (!in_quotes && !value->open && strchr(" \t\n", *c) != NULL) {
            if ((st = dt_shell_end_word(s)) != DT_OK)
                return st;
            continue;
        }
        begin_word(s);
        s->open = s->open || value->open;
        dt_strbuf_add_char(&s->word, *c);
    }
    return DT_OK;
}

static dt_status add_words(dt_shell_scanner *s, const dt_shell_command *words)
{
    dt_status st = DT_OK;

    for (size_t i = 0; i < words->count && st == DT_OK; i++) {
        if (i > 0)
            st = dt_shell_end_word(s);
        if (st == DT_OK)
            st = add_value(s, &words->words[i], true);
    }
    return st;
}

static size_t name_length(const char *at, const char *end)
{
    size_t length = 0;

    if (at < end && isdigit((unsigned char)*at))
        return 0;
    while (at + length < end && (isalnum((unsigned char)at[length]) || at[length] == '_'))
        length++;
    return length;
}

/* Expands $NAME. */
static dt_status expand_name(dt_shell_scanner *s, bool in_quotes)
{
    size_t length = name_length(s->at + 1, s->end);
    const dt_shell_variable *variable = dt_shell_find(s->script, s->at + 1, length);

    if (length == 0 || variable == NULL || variable->value.count == 0) {
        if (length == 0) /* the character of $1, $@, $? and so on; "$" alone stays */
            length = s->at + 1 < s->end && strchr("@*#?!$-0123456789", s->at[1]) != NULL ? 1 : 0;
        add_open(s, s->at + 1 + length);
        return DT_OK;
    }
    s->at += 1 + length;
    return add_value(s, &variable->value.words[0], in_quotes);
}

/* Expands ${NAME}, ${NAME:-value} and ${NAME[@]}. */
static dt_status expand_braces(dt_shell_scanner *s, bool in_quotes)
{
    const char *end = behind_bracket(s->at + 1, s->end), *name = s->at + 2, *rest;
    size_t length = name_length(name, end), left;
    const dt_shell_variable *variable = dt_shell_find(s->script, name, length);
    bool known = variable != NULL && variable->value.count > 0;

    rest = name + length;
    left = end > rest ? (size_t)(end - rest) : 0;
    if (known && left == 1) {
        s->at = end;
        return add_value(s, &variable->value.words[0], in_quotes);
    }
    if (known && left == 4 && (memcmp(rest, "[@]", 3) == 0 || memcmp(rest, "[*]", 3) == 0)) {
        s->at = end;
        return add_words(s, &variable->value);
    }
    if (left >= 3 && memcmp(rest, ":-", 2) == 0 && memchr(rest + 2, '$', left - 3) == NULL) {
        dt_shell_word other = {.text = dt_arena_strndup(s->script->arena, rest + 2, left - 3)};

        s->at = end;
        return add_value(s, known ? &variable->value.words[0] : &other, in_quotes);
    }
    add_open(s, end);
    return DT_OK;
}

/* Replaces $(which PROGRAM) by PROGRAM; any other command is kept unchanged, as only a shell can
 * run it. */
static dt_status expand_parentheses(dt_shell_scanner *s)
{
    static const char which[] = "$(which ";
    const char *end = behind_bracket(s->at + 1, s->end);
    size_t length = (size_t)(end - s->at), skip = sizeof(which) - 1;

    if (length > skip + 1 && end[-1] == ')' && memcmp(s->at, which, skip) == 0) {
        begin_word(s);
        dt_strbuf_add(&s->word, s->at + skip, length - skip - 1);
        s->at = end;
        return DT_OK;
    }
    add_open(s, end);
    return DT_OK;
}

dt_status dt_shell_expand(dt_shell_scanner *s, bool in_quotes)
{
    const char *end;

    if (*s->at == '`') {
        end = s->at + 1 < s->end ? memchr(s->at + 1, '`', (size_t)(s->end - s->at - 1)) : NULL;
        if (end == NULL)
            return DT_FAIL(s->err, DT_ERR_USAGE, "%s:%d: a '`' is not closed", s->source, s->line);
        add_open(s, end + 1);
        return DT_OK;
    }
    if (s->at + 1 < s->end && s->at[1] == '{')
        return expand_braces(s, in_quotes);
    if (s->at + 1 < s->end && s->at[1] == '(')
        return expand_parentheses(s);
    return expand_name(s, in_quotes);
}
