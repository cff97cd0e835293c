#include "runner/convert/command_line.h"

#include <ctype.h>
#include <string.h>

#include "runner/convert/command_line_int.h"

#include "base/banned.h"

static dt_status refuse(dt_shell_scanner *s, int line, const char *what)
{
    return DT_FAIL(s->err, DT_ERR_USAGE, "%s:%d: %s", s->source, line, what);
}

static void remark(dt_shell_scanner *s, const char *text)
{
    dt_shell_add_to(&s->script->remarks, text, strlen(text), s->line, s->script->arena);
}

/* Processes a word of "export": NAME=value, or the NAME of a variable that is already defined. */
static dt_status export_word(dt_shell_script *script, const dt_shell_word *word, dt_error *err)
{
    const dt_shell_variable *variable = dt_shell_find(script, word->text, strlen(word->text));

    if (dt_shell_assigned(word->text) > 0)
        return dt_shell_define_word(script, word, true, err);
    if (variable == NULL)
        return DT_OK;
    dt_shell_define_words(script, word->text, strlen(word->text), &variable->value, true);
    return DT_OK;
}

static bool is_assignments(const dt_shell_command *command)
{
    for (size_t i = 0; i < command->count; i++)
        if (dt_shell_assigned(command->words[i].text) == 0)
            return false;
    return true;
}

/* Appends a line that begins with a flag to the command before it, which lacks a backslash at its
 * end. */
static dt_status continue_last(dt_shell_scanner *s)
{
    dt_shell_command *last = &s->script->commands[s->script->count - 1];
    dt_status st = DT_OK;

    for (size_t i = 0; i < s->command.count && st == DT_OK; i++)
        st = dt_shell_add_word(last, &s->command.words[i], s->script->arena, s->err);
    if (st == DT_OK)
        remark(s, "this line begins with a flag: it is read as a part of the command before");
    return st;
}

/* Ends a command. One that only assigns or exports defines variables; any other is added to the
 * script. */
static dt_status end_command(dt_shell_scanner *s)
{
    const dt_shell_command *command = &s->command;
    dt_status st = dt_shell_end_word(s);

    if (st != DT_OK || command->count == 0)
        return st;
    if (strcmp(command->words[0].text, "export") == 0) {
        for (size_t i = 1; i < command->count && st == DT_OK; i++)
            st = export_word(s->script, &command->words[i], s->err);
    } else if (is_assignments(command)) {
        for (size_t i = 0; i < command->count && st == DT_OK; i++)
            st = dt_shell_define_word(s->script, &command->words[i], false, s->err);
    } else if (command->words[0].text[0] == '-' && command->words[0].text[1] != '\0' &&
               s->script->count > 0) {
        st = continue_last(s);
    } else {
        dt_shell_add_command(s->script, command);
    }
    s->command = (dt_shell_command){0};
    return st;
}

static void take_char(dt_shell_scanner *s, char c)
{
    if (!s->in_word)
        s->word_line = s->line;
    s->in_word = true;
    dt_strbuf_add_char(&s->word, c);
    s->line += c == '\n';
}

/* "\<newline>" is removed. So is "\ <newline>", which a shell would read as a blank and the end of the command: the
 * blank is invisible, and never intended. Returns whether it was there. */
static bool skip_continuation(dt_shell_scanner *s)
{
    const char *at = s->at + 1;
    bool blanks = false;

    for (; at < s->end && strchr(" \t\r", *at) != NULL && *at != '\0'; at++)
        blanks = blanks || *at != '\r';
    if (at == s->end || *at != '\n')
        return false;
    s->at = at + 1;
    if (blanks)
        remark(s,
               "blanks follow the backslash at its end, where a shell would end the command: the "
               "line is read as continued");
    s->line++;
    return true;
}

static dt_status take_quotes(dt_shell_scanner *s)
{
    char quote = *s->at++;
    int line = s->line;
    dt_status st;

    if (!s->in_word)
        s->word_line = s->line;
    s->in_word = s->quoted = true;
    while (s->at < s->end && *s->at != quote) {
        if (quote == '"' && (*s->at == '$' || *s->at == '`')) {
            if ((st = dt_shell_expand(s, true)) != DT_OK)
                return st;
        } else {
            if (quote == '"' && *s->at == '\\' && skip_continuation(s))
                continue;
            if (quote == '"' && *s->at == '\\' && s->at + 1 < s->end &&
                strchr("$`\"\\", s->at[1]) != NULL)
                s->at++;
            take_char(s, *s->at++);
        }
    }
    if (s->at >= s->end)
        return refuse(s, line,
                      quote == '"' ? "a double quote is not closed"
                                   : "a single quote is not closed");
    s->at++;
    return DT_OK;
}

/* Returns the length of a placeholder such as "<DATA>" or "<path to data>"; 0: not a placeholder.
 * "<in 2>out", with a number before '>', and "<in >out", with a blank, are redirections. */
static size_t placeholder_length(const dt_shell_scanner *s)
{
    size_t length = 1, word = 1;

    while (s->at + length < s->end && (isalnum((unsigned char)s->at[length]) ||
                                       (length > 1 && strchr(" _-./", s->at[length]) != NULL))) {
        length++;
        if (s->at[length - 1] == ' ')
            word = length;
    }
    if (length == 1 || s->at + length >= s->end || s->at[length] != '>' || word == length)
        return 0;
    while (word < length && isdigit((unsigned char)s->at[word]))
        word++;
    return word < length ? length + 1 : 0;
}

static void take_placeholder(dt_shell_scanner *s, size_t length)
{
    for (size_t i = 0; i < length; i++)
        take_char(s, *s->at++);
    s->open = true;
    remark(s, "a name in <> is read as a placeholder to fill in, not as a redirection");
}

/* Skips a redirection ("> FILE", "2>&1", "<<END") together with the word that follows it. */
static dt_status skip_redirection(dt_shell_scanner *s)
{
    const char *start = s->at;
    bool document = s->end - s->at >= 2 && s->at[0] == '<' && s->at[1] == '<';
    size_t count;
    dt_status st;

    if (*s->at == '<' && (count = placeholder_length(s)) > 0) {
        take_placeholder(s, count);
        return DT_OK;
    }
    if (s->in_word && s->word.data[strspn(s->word.data, "0123456789")] == '\0') {
        start -= s->word.length;
        dt_strbuf_reset(&s->word); /* the number of a file descriptor */
        s->in_word = s->open = false;
    }
    if ((st = dt_shell_end_word(s)) != DT_OK)
        return st;
    while (s->at < s->end && strchr("<>&|-", *s->at) != NULL && *s->at != '\0')
        s->at++;
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
        s->at++;
    count = 0;
    while (s->at + count < s->end && strchr(" \t\r\n;|&<>()", s->at[count]) == NULL)
        count++;
    if (document && count > 0) {
        const char *word = s->at;
        size_t length = count;

        if (length >= 2 && (*word == '\'' || *word == '"')) {
            word++;
            length -= 2;
        }
        s->heredoc = dt_arena_strndup(s->script->arena, word, length);
    }
    s->at += count;
    dt_shell_add_to(&s->command.redirections, start, (size_t)(s->at - start), s->line,
                    s->script->arena);
    return DT_OK;
}

/* Skips the lines of a here-document, and the line that ends it. */
static void skip_document(dt_shell_scanner *s)
{
    size_t length = strlen(s->heredoc);

    while (s->at < s->end) {
        const char *stop = memchr(s->at, '\n', (size_t)(s->end - s->at));
        const char *start = s->at;
        size_t size = (size_t)((stop != NULL ? stop : s->end) - s->at);

        s->at = stop != NULL ? stop + 1 : s->end;
        s->line += stop != NULL;
        while (size > 0 && *start == '\t') {
            start++;
            size--;
        }
        if (size == length && memcmp(start, s->heredoc, length) == 0)
            break;
    }
    s->heredoc = NULL;
}

/* Reads an array, NAME=( words ), from its '('. */
static dt_status take_array(dt_shell_scanner *s);

static dt_status take_separator(dt_shell_scanner *s)
{
    char c = *s->at;
    dt_status st = DT_OK;

    if (c == '(' && s->in_word && !s->quoted && dt_shell_assigned(s->word.data) > 0 &&
        s->word.data[s->word.length - 1] == '=')
        return take_array(s);
    s->at++;
    if (c == ' ' || c == '\t' || c == '\r')
        return dt_shell_end_word(s);
    st = end_command(s);
    if (c == '\n') {
        s->line++;
        if (s->heredoc != NULL)
            skip_document(s);
    }
    return st;
}

/* Processes one character, quoted part, separator or comment. */
static dt_status step(dt_shell_scanner *s)
{
    char c = *s->at;

    if (c == '#' && !s->in_word) {
        while (s->at < s->end && *s->at != '\n')
            s->at++;
        return DT_OK;
    }
    if (c == '\'' || c == '"')
        return take_quotes(s);
    if (c == '$' || c == '`')
        return dt_shell_expand(s, false);
    if (c == '<' || c == '>' || (c == '&' && s->end - s->at >= 2 && s->at[1] == '>'))
        return skip_redirection(s);
    if (strchr(" \t\r\n;|&()", c) != NULL)
        return take_separator(s);
    if (c == '\\') {
        if (skip_continuation(s))
            return DT_OK;
        if (s->at + 1 < s->end)
            s->at++;
    }
    take_char(s, *s->at++);
    return DT_OK;
}

static dt_status take_array(dt_shell_scanner *s)
{
    dt_shell_command outer = s->command;
    size_t length = s->word.length - 1;
    char *name = dt_arena_strndup(s->script->arena, s->word.data, length);
    dt_status st = DT_OK;
    int line = s->line;

    dt_strbuf_reset(&s->word);
    s->in_word = s->open = false;
    s->command = (dt_shell_command){0};
    s->at++;
    while (st == DT_OK && s->at < s->end && *s->at != ')') {
        if (*s->at == '\n') {
            st = dt_shell_end_word(s);
            s->at++;
            s->line++;
        } else if (*s->at == '(' || *s->at == ';') {
            return refuse(s, s->line, "an array of words has '(' or ';' in it");
        } else {
            st = step(s);
        }
    }
    if (st == DT_OK && s->at >= s->end)
        return refuse(s, line, "a '(' is not closed");
    if (st == DT_OK)
        st = dt_shell_end_word(s);
    if (st == DT_OK)
        dt_shell_define_words(s->script, name, length, &s->command, false);
    s->command = outer;
    s->at += st == DT_OK;
    return st;
}

dt_status dt_shell_read(dt_shell_script *script, const char *text, size_t length,
                        const char *source, dt_error *err)
{
    dt_shell_scanner s = {.script = script,
                          .source = source,
                          .at = text,
                          .end = text + length,
                          .line = 1,
                          .err = err};
    dt_status st = dt_shell_check_text(text, length, source, err);

    dt_strbuf_init(&s.word);
    while (st == DT_OK && s.at < s.end)
        st = step(&s);
    if (st == DT_OK)
        st = end_command(&s);
    dt_strbuf_release(&s.word);
    return st;
}
