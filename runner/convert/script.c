#include "runner/convert/script.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "runner/convert/convert_int.h"
#include "runner/convert/launcher.h"

dt_status dt_script_take(dt_script *script, char *const *words, size_t count, dt_error *err)
{
    dt_status st = DT_OK;

    for (size_t i = 0; i < count && st == DT_OK; i++) {
        dt_shell_word word = {.text = words[i], .assigns = dt_shell_assigned(words[i]) > 0};

        st = dt_shell_check_text(words[i], strlen(words[i]), "the command line", err);
        if (st == DT_OK)
            st = dt_shell_add_word(&script->command, &word, script->arena, err);
    }
    return st;
}

/* --- words */

static void take_char(dt_script_scanner *s)
{
    dt_script_begin_word(s);
    s->line += *s->at == '\n';
    dt_strbuf_add_char(&s->word, *s->at++);
}

static size_t line_end(const dt_script_scanner *s, const char *at)
{
    if (at < s->end && *at == '\n')
        return 1;
    return at + 1 < s->end && at[0] == '\r' && at[1] == '\n' ? 2 : 0;
}

/* Takes a backslash and what follows it. */
static dt_status take_backslash(dt_script_scanner *s, bool in_quotes)
{
    size_t end = line_end(s, s->at + 1), blanks = 1;

    if (end > 0) {
        s->at += 1 + end;
        s->line++;
        return DT_OK;
    }
    while (s->at + blanks < s->end && (s->at[blanks] == ' ' || s->at[blanks] == '\t'))
        blanks++;
    if (blanks > 1 && (s->at + blanks == s->end || line_end(s, s->at + blanks) > 0))
        return dt_script_refuse(s, s->line,
                                "blanks follow the backslash at the end of the line, so the "
                                "command ends there: remove them");
    dt_script_begin_word(s);
    dt_script_not_plain(s);
    if (s->at + 1 == s->end)
        return dt_script_refuse(s, s->line, "a backslash ends the text");
    if (!in_quotes || strchr("$`\"\\", s->at[1]) != NULL)
        s->at++;
    take_char(s);
    return DT_OK;
}

static dt_status take_quotes(dt_script_scanner *s)
{
    char quote = *s->at++;
    int line = s->line;
    dt_status st = DT_OK;

    dt_script_begin_word(s);
    dt_script_not_plain(s);
    while (st == DT_OK && s->at < s->end && *s->at != quote) {
        if (quote == '"' && (*s->at == '$' || *s->at == '`'))
            st = dt_script_expand(s, true);
        else if (quote == '"' && *s->at == '\\')
            st = take_backslash(s, true);
        else
            take_char(s);
    }
    if (st != DT_OK)
        return st;
    if (s->at >= s->end)
        return dt_script_refuse(s, line,
                                quote == '"' ? "a double quote is not closed"
                                             : "a single quote is not closed");
    s->at++;
    return DT_OK;
}

/* Returns the end of a brace expansion, "{a,b}" or "{0..3}", at the scanner; NULL: the brace is literal. */
static const char *find_braces(const dt_script_scanner *s)
{
    bool several = false;

    for (const char *c = s->at + 1; c < s->end && strchr(" \t\r\n;&|", *c) == NULL; c++) {
        several = several || *c == ',' || (*c == '.' && c[-1] == '.');
        if (*c == '}')
            return several ? c + 1 : NULL;
    }
    return NULL;
}

/* Takes a character that a shell may expand, or one that a word processor made. Returns false if it is an ordinary
 * one. */
static bool take_special(dt_script_scanner *s, dt_status *st)
{
    static const char *const typed[] = {"\u201c", "\u201d", "\u2018", "\u2019",
                                        "\u00a0", "\u2013", "\u2014", NULL};
    char before = s->word.length > 0 ? s->word.data[s->word.length - 1] : '\0';
    const char *braces;

    if (strchr("*?[", *s->at) != NULL) {
        if (*s->at == '[' && !s->in_word && s->command.count == 0)
            return false; /* the command "[" */
        if (s->in_word && s->command.count == 0 && dt_shell_assigned(s->word.data) > 0 &&
            dt_shell_assigned(s->word.data) < s->plain)
            return false; /* a shell expands it where the variable is used */
        dt_script_add_open(s, s->at + 1,
                           "a pattern of file names, which a shell expands: quote it");
        return true;
    }
    if (*s->at == '{' && (braces = find_braces(s)) != NULL) {
        dt_script_add_open(s, braces, "braces, which a shell expands: write the words");
        return true;
    }
    if (*s->at == '~' && (!s->in_word || before == '=' || before == ':')) {
        dt_script_add_open(s, s->at + 1, "'~', which a shell expands: write the path");
        return true;
    }
    for (size_t i = 0; typed[i] != NULL; i++)
        if ((size_t)(s->end - s->at) >= strlen(typed[i]) &&
            memcmp(s->at, typed[i], strlen(typed[i])) == 0) {
            *st = dt_script_refuse(s, s->line,
                                   "a typographic quote, dash or blank: type the plain one");
            return true;
        }
    return false;
}

/* --- redirections and pipes */

/* Skips blanks, and a word with its quotes. */
static void skip_word(dt_script_scanner *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
        s->at++;
    while (s->at < s->end && strchr(" \t\r\n;|&<>()", *s->at) == NULL) {
        const char *closed = NULL;

        if (*s->at == '"' || *s->at == '\'')
            closed = memchr(s->at + 1, *s->at, (size_t)(s->end - s->at - 1));
        s->at = closed != NULL ? closed + 1 : s->at + 1;
    }
}

static void add_redirection(dt_script_scanner *s, const char *start)
{
    dt_shell_add_to(&s->script->redirections, start, (size_t)(s->at - start), s->line,
                    s->script->arena);
    s->redirections++;
}

static dt_status take_redirection(dt_script_scanner *s)
{
    const char *start = s->at;

    if (*s->at == '<') {
        const char *close = memchr(s->at, '>', (size_t)(s->end - s->at));
        const char *stop = memchr(s->at, '\n', (size_t)(s->end - s->at));

        if (s->end - s->at >= 2 && s->at[1] == '<')
            return dt_script_refuse(s, s->line, "a here-document");
        if (s->end - s->at >= 2 && s->at[1] == '(')
            return dt_script_refuse(s, s->line, "a substitution of a process");
        if (close != NULL && (stop == NULL || close < stop) && s->end - s->at >= 2 &&
            isalpha((unsigned char)s->at[1]))
            return dt_script_refuse(s, s->line, "a placeholder in '<>': write its value");
        return dt_script_refuse(s, s->line, "the input of a command: a run has none");
    }
    if (s->in_word && s->plain == SIZE_MAX &&
        s->word.data[strspn(s->word.data, "0123456789")] == '\0') {
        start -= s->word.length;
        dt_strbuf_reset(&s->word); /* the number of a file descriptor */
        s->in_word = false;
    }
    if (dt_script_end_word(s) != DT_OK)
        return s->err->code;
    while (s->at < s->end && strchr(">&|", *s->at) != NULL)
        s->at++;
    if (s->at < s->end && *s->at == '(')
        return dt_script_refuse(s, s->line, "a substitution of a process");
    skip_word(s);
    add_redirection(s, start);
    return DT_OK;
}

/* Takes "| tee FILE" at the end of a command. */
static dt_status take_pipe(dt_script_scanner *s)
{
    const char *start = s->at++, *word;

    while (s->at < s->end && (*s->at == ' ' || *s->at == '&'))
        s->at++;
    word = s->at;
    skip_word(s);
    if (s->at - word != 3 || memcmp(word, "tee", 3) != 0)
        return dt_script_refuse(s, s->line,
                                "a pipe to another command: 'dtrun logs' has the output");
    while (s->at < s->end && strchr(" \t", *s->at) != NULL)
        skip_word(s);
    if (s->at < s->end && strchr("\r\n;", *s->at) == NULL)
        return dt_script_refuse(s, s->line, "a pipe to several commands");
    add_redirection(s, start);
    return DT_OK;
}

/* --- commands */

/* Defines NAME=(...) as a variable that only a shell knows. */
static dt_status take_array(dt_script_scanner *s)
{
    const char *end = dt_script_after_bracket(s->at, s->end);

    if (end == NULL)
        return dt_script_refuse(s, s->line, "a '(' is not closed");
    dt_script_add_open(s, end, "an array: write its words");
    return DT_OK;
}

static dt_status end_command(dt_script_scanner *s)
{
    dt_status st = dt_script_end_word(s);

    if (st == DT_OK)
        st = dt_script_take_command(s);
    s->command = (dt_shell_command){0};
    s->redirections = 0;
    return st;
}

/* Refuses a command that begins with a keyword or a program that is refused anyway, which is a better reason than the
 * operator in it. */
static dt_status check_first(dt_script_scanner *s)
{
    const dt_shell_word *first = s->command.words;
    const char *reason = s->command.count > 0 ? dt_script_refused_program(first->text) : NULL;

    if (reason == NULL)
        return DT_OK;
    return dt_script_refuse(s, first->line,
                            dt_arena_printf(s->script->arena, "'%s': %s", first->text, reason));
}

static dt_status take_operator(dt_script_scanner *s)
{
    char c = *s->at, next = s->end - s->at >= 2 ? s->at[1] : '\0';
    size_t before = s->script->command.count;
    dt_status st;

    if (c == '&' && next == '>')
        return take_redirection(s);
    if ((st = check_first(s)) != DT_OK)
        return st;
    if (c == '&' && next == '&') {
        s->at += 2;
        st = end_command(s);
        if (st == DT_OK && s->script->command.count > before)
            return dt_script_refuse(s, s->line, "'&&' starts another command after this one");
        return st;
    }
    if (c == '&')
        return dt_script_refuse(s, s->line,
                                "'&' starts the command in the background: remove it ('dtrun "
                                "launch' returns at once)");
    if (c == '|' && next == '|')
        return dt_script_refuse(s, s->line, "'||' makes a command depend on another one's failure");
    if (c == '|') {
        st = dt_script_end_word(s);
        return st == DT_OK ? take_pipe(s) : st;
    }
    if (c == '(' && s->in_word && s->plain == SIZE_MAX && dt_shell_assigned(s->word.data) > 0)
        return take_array(s);
    if (c == '(' && s->in_word && s->command.count == 0)
        return dt_script_refuse(s, s->line, "a function");
    return dt_script_refuse(s, s->line, "commands in parentheses");
}

/* Processes one character, quoted part, separator or comment. */
static dt_status step(dt_script_scanner *s)
{
    dt_status st = DT_OK;
    char c = *s->at;

    if (c == '#' && !s->in_word) {
        while (s->at < s->end && *s->at != '\n')
            s->at++;
        return DT_OK;
    }
    if (c == '\'' || c == '"')
        return take_quotes(s);
    if (c == '$' || c == '`')
        return dt_script_expand(s, false);
    if (c == '\\')
        return take_backslash(s, false);
    if (c == '<' || c == '>')
        return take_redirection(s);
    if (strchr("|&()", c) != NULL)
        return take_operator(s);
    if (c == ' ' || c == '\t' || line_end(s, s->at) > 0 || c == ';') {
        size_t end = line_end(s, s->at);

        st = c == ' ' || c == '\t' ? dt_script_end_word(s) : end_command(s);
        s->at += end > 0 ? end : 1;
        s->line += end > 0;
        return st;
    }
    if (!take_special(s, &st) && st == DT_OK)
        take_char(s);
    return st;
}

dt_status dt_script_read_sbatch(dt_script *script, const char *text, size_t length, dt_error *err)
{
    static const char mark[] = "#SBATCH";
    dt_status st = dt_shell_check_text(text, length, script->source, err);
    int number = 1;

    for (size_t at = 0, size; at < length && st == DT_OK; at += size + 1, number++) {
        const char *line = text + at, *end = memchr(line, '\n', length - at);
        dt_script options;
        size_t blank;

        size = end != NULL ? (size_t)(end - line) : length - at;
        blank = strspn(line, " \t\r");
        if (blank < size && line[blank] != '#')
            break;
        if (size < sizeof(mark) || memcmp(line, mark, sizeof(mark) - 1) != 0 ||
            strchr(" \t", line[sizeof(mark) - 1]) == NULL)
            continue;
        dt_script_init(&options, script->source, script->arena);
        {
            dt_script_scanner s = {.script = &options,
                                   .at = line + sizeof(mark),
                                   .end = line + size,
                                   .line = number,
                                   .err = err};

            dt_strbuf_init(&s.word);
            while (st == DT_OK && s.at < s.end)
                st = s.at + 1 == s.end && *s.at == '\r' ? (s.at++, DT_OK)
                     : strchr("|&();<>", *s.at) != NULL ? (take_char(&s), DT_OK)
                                                        : step(&s);
            if (st == DT_OK)
                st = dt_script_end_word(&s);
            for (size_t i = 0; i < s.command.count && st == DT_OK; i++)
                st = dt_shell_add_word(&script->sbatch, &s.command.words[i], script->arena, err);
            dt_strbuf_release(&s.word);
        }
    }
    return st;
}

dt_status dt_script_read(dt_script *script, const char *text, size_t length, dt_error *err)
{
    dt_script_scanner s = {
        .script = script, .at = text, .end = text + length, .line = 1, .err = err};
    dt_status st = dt_shell_check_text(text, length, script->source, err);

    dt_strbuf_init(&s.word);
    while (st == DT_OK && s.at < s.end)
        st = step(&s);
    if (st == DT_OK)
        st = end_command(&s);
    dt_strbuf_release(&s.word);
    return st;
}
