/* words: stores the words of command lines, builds the words of a script and expands its variables. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "runner/convert/convert_int.h"
#include "runner/convert/script.h"

enum { WORDS_MOST = 65536 };

dt_status dt_shell_add_word(dt_shell_command *command, const dt_shell_word *word, dt_arena *arena,
                            dt_error *err)
{
    if (command->count >= WORDS_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "a command has more than %d words", WORDS_MOST);
    command->words = dt_arena_array_room(arena, command->words, command->count + 1,
                                         &command->capacity, sizeof(command->words[0]));
    command->words[command->count++] = *word;
    return DT_OK;
}

void dt_shell_add_to(dt_shell_words *words, const char *text, size_t length, int line,
                     dt_arena *arena)
{
    words->items = dt_arena_array_room(arena, words->items, words->count + 1, &words->capacity,
                                       sizeof(words->items[0]));
    words->items[words->count++] =
        (dt_shell_word){.text = dt_arena_strndup(arena, text, length), .line = line};
}

size_t dt_shell_assigned(const char *word)
{
    size_t length = 0;

    if (isdigit((unsigned char)word[0]))
        return 0;
    while (isalnum((unsigned char)word[length]) || word[length] == '_')
        length++;
    return word[length] == '=' ? length : 0;
}

/* Returns true for characters that are invalid in a recipe, where both programs would also display
 * them. */
static bool is_control(uint32_t code)
{
    return (code < 0x20 && strchr("\t\n\r", (int)code) == NULL) || code == 0 ||
           (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 || code >= 0xfffe;
}

dt_status dt_shell_check_text(const char *text, size_t length, const char *source, dt_error *err)
{
    size_t taken, line = 1;
    uint32_t code;

    for (size_t at = 0; at < length; at += taken) {
        taken = dt_utf8_decode(&code, (const unsigned char *)text + at, length - at);
        if (taken == 0)
            return DT_FAIL(err, DT_ERR_USAGE, "%s:%zu: this is not UTF-8 text", source, line);
        if (code < 0x10000 && is_control(code))
            return DT_FAIL(err, DT_ERR_USAGE, "%s:%zu: unsupported control character U+%04X",
                           source, line, code);
        line += code == '\n';
    }
    return DT_OK;
}

/* script_words: builds the words of a script and expands its variables.
 *
 * Marks      inside of values, an open part is "\x01" INDEX "\x03" TEXT "\x02", where INDEX is that of its reason. The text of
 *            a script has none of these characters.
 */

void dt_script_init(dt_script *out, const char *source, dt_arena *arena)
{
    *out = (dt_script){.arena = arena, .source = source};
}

void dt_script_define(dt_script *script, const char *name, const char *value, bool exported)
{
    const char *copy = dt_arena_strdup(script->arena, value);

    for (size_t i = 0; i < script->variables_count; i++)
        if (strcmp(script->variables[i].name, name) == 0) {
            script->variables[i].value = copy;
            script->variables[i].exported = script->variables[i].exported || exported;
            return;
        }
    script->variables =
        dt_arena_array_room(script->arena, script->variables, script->variables_count + 1,
                            &script->variables_capacity, sizeof(script->variables[0]));
    script->variables[script->variables_count++] =
        (dt_script_variable){dt_arena_strdup(script->arena, name), copy, exported};
}

enum { DEEPEST = 32 }; /* levels of nested brackets */

void dt_script_begin_word(dt_script_scanner *s)
{
    if (s->in_word)
        return;
    s->word_line = s->line;
    s->in_word = true;
    s->plain = SIZE_MAX;
}

void dt_script_not_plain(dt_script_scanner *s)
{
    if (s->plain == SIZE_MAX)
        s->plain = s->word.length;
}

static size_t add_reason(dt_script *script, const char *reason)
{
    script->reasons =
        dt_arena_array_room(script->arena, (void *)script->reasons, script->reasons_count + 1,
                            &script->reasons_capacity, sizeof(script->reasons[0]));
    script->reasons[script->reasons_count] = reason;
    return script->reasons_count++;
}

void dt_script_add_open(dt_script_scanner *s, const char *end, const char *reason)
{
    dt_script_begin_word(s);
    dt_script_not_plain(s);
    dt_strbuf_add_fmt(&s->word, "\x01%zu\x03", add_reason(s->script, reason));
    for (; s->at < end; s->at++) {
        s->line += *s->at == '\n';
        dt_strbuf_add_char(&s->word, *s->at == '\n' || *s->at == '\r' ? ' ' : *s->at);
    }
    dt_strbuf_add_char(&s->word, '\x02');
}

const char *dt_script_plain(const dt_script *script, const char *value, const char **open)
{
    const char *text;
    dt_strbuf out;

    *open = NULL;
    if (strpbrk(value, "\x01\x02") == NULL)
        return value;
    dt_strbuf_init(&out);
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '\x01') {
            size_t reason = strtoul(c + 1, NULL, 10);

            if (*open == NULL)
                *open = script->reasons[reason];
            c = strchr(c, '\x03');
        } else if (*c != '\x02') {
            dt_strbuf_add_char(&out, *c);
        }
    }
    text = dt_arena_strdup(script->arena, out.length > 0 ? out.data : "");
    dt_strbuf_release(&out);
    return text;
}

dt_status dt_script_end_word(dt_script_scanner *s)
{
    const char *value;
    dt_shell_word word = {.line = s->word_line};
    size_t name;

    if (!s->in_word)
        return DT_OK;
    if (s->word.length > DT_SCRIPT_WORD_MOST)
        return dt_script_refuse(s, s->word_line, "a word has more than 65536 bytes");
    s->in_word = false;
    word.in_path = s->in_path;
    s->in_path = false;
    value = dt_arena_strdup(s->script->arena, s->word.length > 0 ? s->word.data : "");
    dt_strbuf_reset(&s->word);
    name = dt_shell_assigned(value);
    word.assigns = name > 0 && name < s->plain;
    word.text = dt_script_plain(s->script, value, &word.open);
    if (word.assigns) /* the marks are needed when the variable is used */
        word.text = value;
    return dt_shell_add_word(&s->command, &word, s->script->arena, s->err);
}

const char *dt_script_after_bracket(const char *at, const char *end)
{
    char open = *at, close = open == '(' ? ')' : '}';
    int depth = 0;

    for (; at < end; at++) {
        if (*at == '\\' || *at == '\'' || *at == '"') {
            char quote = *at++;

            while (quote != '\\' && at < end && *at != quote)
                at += *at == '\\' && quote == '"' ? 2 : 1;
            continue;
        }
        depth += *at == open ? 1 : *at == close ? -1 : 0;
        if (depth == 0)
            return at + 1;
        if (depth > DEEPEST)
            break;
    }
    return NULL;
}

/* Adds the value of a variable. Outside quotes it is split into words at blanks, as in a shell. */
static dt_status add_value(dt_script_scanner *s, const char *name, const char *value,
                           bool in_quotes)
{
    bool open = false;
    dt_status st;

    if (in_quotes)
        dt_script_begin_word(s);
    if (s->in_word)
        dt_script_not_plain(s);
    if (s->word.length + strlen(value) > DT_SCRIPT_WORD_MOST)
        return dt_script_refuse(s, s->line, "a word has more than 65536 bytes");
    for (const char *c = value; *c != '\0'; c++) {
        open = *c == '\x01' ? true : *c == '\x02' ? false : open;
        if (!in_quotes && !open && strchr(" \t\n", *c) != NULL) {
            if ((st = dt_script_end_word(s)) != DT_OK)
                return st;
            continue;
        }
        dt_script_begin_word(s);
        dt_script_not_plain(s);
        if (!in_quotes && !open && strchr("*?[", *c) != NULL) {
            const char *reason = dt_arena_printf(
                s->script->arena, "'$%s' has a pattern of file names, which a shell expands", name);

            dt_strbuf_add_fmt(&s->word, "\x01%zu\x03%c\x02", add_reason(s->script, reason), *c);
            continue;
        }
        dt_strbuf_add_char(&s->word, *c);
    }
    return DT_OK;
}

static const dt_script_variable *find(const dt_script *script, const char *name, size_t length)
{
    for (size_t i = script->variables_count; i > 0; i--) {
        const dt_script_variable *variable = &script->variables[i - 1];

        if (strlen(variable->name) == length && memcmp(variable->name, name, length) == 0)
            return variable;
    }
    return NULL;
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

static dt_status expand_name(dt_script_scanner *s, const char *name, size_t length, const char *end,
                             bool in_quotes)
{
    const dt_script_variable *variable = find(s->script, name, length);

    if (variable == NULL) {
        dt_script_add_open(s, end,
                           dt_arena_printf(s->script->arena, "'$%.*s' has no value in the script",
                                           (int)length, name));
        return DT_OK;
    }
    s->at = end;
    return add_value(s, variable->name, variable->value, in_quotes);
}

/* Returns the text of a default such as "./a.toml" without its quotes; NULL: it is not a literal. */
static const char *literal(const char *text, size_t length, dt_arena *arena)
{
    char quote = length >= 2 && (*text == '"' || *text == '\'') ? *text : '\0';

    if (quote != '\0' && text[length - 1] == quote) {
        text++;
        length -= 2;
    }
    for (size_t i = 0; i < length; i++)
        if (strchr(quote != '\0' ? "$`\\\"'" : "$`\\\"'*?[~{", text[i]) != NULL)
            return NULL;
    return dt_arena_strndup(arena, text, length);
}

/* Expands ${NAME} and ${NAME:-literal}. */
static dt_status expand_braces(dt_script_scanner *s, bool in_quotes)
{
    const char *end = dt_script_after_bracket(s->at + 1, s->end), *name = s->at + 2, *rest, *value;
    size_t length = name_length(name, s->end), left;

    if (end == NULL)
        return dt_script_refuse(s, s->line, "a '${' is not closed");
    rest = name + length;
    left = (size_t)(end - rest) - 1;
    if (length > 0 && left == 0)
        return expand_name(s, name, length, end, in_quotes);
    if (length > 0 && left >= 2 && rest[0] == ':' && rest[1] == '-') {
        const dt_script_variable *variable = find(s->script, name, length);

        value = literal(rest + 2, left - 2, s->script->arena);
        if (variable != NULL && variable->value[0] != '\0')
            return expand_name(s, name, length, end, in_quotes);
        if (value != NULL && getenv(dt_arena_strndup(s->script->arena, name, length)) == NULL) {
            s->at = end;
            return add_value(s, dt_arena_strndup(s->script->arena, name, length), value, in_quotes);
        }
    }
    dt_script_add_open(s, end,
                       dt_arena_printf(s->script->arena,
                                       length > 0 && *rest == '[' ? "'%.*s' is an item of an array"
                                                                  : "only a shell expands '%.*s'",
                                       (int)(end - s->at < 60 ? end - s->at : 60), s->at));
    return DT_OK;
}

/* Takes "$(which NAME)" for NAME, if it is a whole word. */
static bool take_which(dt_script_scanner *s, const char *end)
{
    static const char which[] = "$(which ";
    size_t skip = sizeof(which) - 1, length = (size_t)(end - s->at);
    const char *name = s->at + skip;

    if (s->in_word || length < skip + 2 || memcmp(s->at, which, skip) != 0 ||
        (end < s->end && strchr(" \t\r\n;", *end) == NULL))
        return false;
    for (const char *c = name; c < end - 1; c++)
        if (!isalnum((unsigned char)*c) && strchr("_-.", *c) == NULL)
            return false;
    dt_script_begin_word(s);
    dt_strbuf_add(&s->word, name, length - skip - 1);
    s->in_path = true;
    s->at = end;
    return true;
}

dt_status dt_script_expand(dt_script_scanner *s, bool in_quotes)
{
    const char *next = s->at + 1, *end;
    size_t length = name_length(next, s->end);

    if (*s->at == '`' || (next < s->end && *next == '(')) {
        end = *s->at == '`' ? memchr(next, '`', (size_t)(s->end - next))
                            : dt_script_after_bracket(next, s->end);
        if (end == NULL)
            return dt_script_refuse(s, s->line, "a command in '$(...)' or '`...`' is not closed");
        end += *s->at == '`';
        if (!in_quotes && take_which(s, end))
            return DT_OK;
        dt_script_add_open(s, end,
                           dt_arena_printf(s->script->arena,
                                           "only a shell knows what '%.*s' prints",
                                           (int)(end - s->at < 60 ? end - s->at : 60), s->at));
        return DT_OK;
    }
    if (next < s->end && *next == '{')
        return expand_braces(s, in_quotes);
    if (length > 0)
        return expand_name(s, next, length, next + length, in_quotes);
    if (next < s->end && (*next == '\'' || *next == '"') && !in_quotes)
        return dt_script_refuse(s, s->line, "quotes of the form $'...' are not read");
    if (next < s->end && strchr("@*#?!$-0123456789", *next) != NULL) {
        dt_script_add_open(
            s, next + 1,
            dt_arena_printf(s->script->arena,
                            strchr("@*#0123456789", *next) != NULL
                                ? "'$%c' is an argument of the script: write its value"
                                : "only a shell knows '$%c'",
                            *next));
        return DT_OK;
    }
    dt_script_begin_word(s);
    dt_script_not_plain(s);
    dt_strbuf_add_char(&s->word, *s->at++);
    return DT_OK;
}
