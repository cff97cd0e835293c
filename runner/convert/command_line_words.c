/* command_line_words: stores the words, commands and variables of a script. */
#include <ctype.h>
#include <string.h>

#include "base/utf8.h"
#include "runner/convert/command_line_int.h"

#include "base/banned.h"

/* Returns an array with room for one more item, moved if needed; NULL: out of memory. */
static void *grow(void *items, size_t count, size_t *capacity, size_t bytes, dt_arena *arena)
{
    size_t larger = *capacity > 0 ? *capacity * 2 : 16;
    void *moved;

    if (count < *capacity)
        return items;
    moved = dt_arena_alloc_array(arena, larger, bytes);
    if (count > 0)
        memcpy(moved, items, count * bytes);
    *capacity = larger;
    return moved;
}

dt_status dt_shell_add_word(dt_shell_command *command, const dt_shell_word *word, dt_arena *arena,
                            dt_error *err)
{
    dt_shell_word *words;

    if (command->count >= DT_SHELL_WORDS_MAX)
        return DT_FAIL(err, DT_ERR_USAGE, "a command has more than %d words", DT_SHELL_WORDS_MAX);
    words = grow(command->words, command->count, &command->capacity, sizeof(words[0]), arena);
    command->words = words;
    words[command->count++] = *word;
    return DT_OK;
}

void dt_shell_add_to(dt_shell_words *words, const char *text, size_t length, int line,
                     dt_arena *arena)
{
    dt_shell_word *items =
        grow(words->items, words->count, &words->capacity, sizeof(items[0]), arena);
    const char *copy = dt_arena_strndup(arena, text, length);

    words->items = items;
    items[words->count++] = (dt_shell_word){.text = copy, .line = line};
}

void dt_shell_add_command(dt_shell_script *script, const dt_shell_command *command)
{
    dt_shell_command *commands = grow(script->commands, script->count, &script->capacity,
                                      sizeof(commands[0]), script->arena);

    script->commands = commands;
    commands[script->count] = *command;
    commands[script->count++].variables = script->variables_count;
}

void dt_shell_init(dt_shell_script *out, dt_arena *arena)
{
    *out = (dt_shell_script){.arena = arena};
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

const dt_shell_variable *dt_shell_find(const dt_shell_script *script, const char *name,
                                       size_t length)
{
    for (size_t i = script->variables_count; i > 0; i--) {
        const dt_shell_variable *variable = &script->variables[i - 1];

        if (strlen(variable->name) == length && memcmp(variable->name, name, length) == 0)
            return variable;
    }
    return NULL;
}

void dt_shell_define_words(dt_shell_script *script, const char *name, size_t length,
                           const dt_shell_command *value, bool exported)
{
    dt_shell_variable *variables =
        grow(script->variables, script->variables_count, &script->variables_capacity,
             sizeof(variables[0]), script->arena);
    const char *copy = dt_arena_strndup(script->arena, name, length);

    script->variables = variables;
    variables[script->variables_count++] = (dt_shell_variable){copy, *value, exported};
}

dt_status dt_shell_define_word(dt_shell_script *script, const dt_shell_word *word, bool exported,
                               dt_error *err)
{
    size_t length = dt_shell_assigned(word->text);
    dt_shell_word value = {word->text + length + 1, word->line, word->open};
    dt_shell_command one = {0};
    dt_status st = dt_shell_add_word(&one, &value, script->arena, err);

    if (st == DT_OK)
        dt_shell_define_words(script, word->text, length, &one, exported);
    return st;
}

dt_status dt_shell_define(dt_shell_script *script, const char *name, const char *value,
                          dt_error *err)
{
    dt_shell_word word = {dt_arena_printf(script->arena, "%s=%s", name, value), 0, false};

    return dt_shell_define_word(script, &word, false, err);
}

dt_status dt_shell_end_word(dt_shell_scanner *s)
{
    dt_shell_word word = {.line = s->word_line, .open = s->open};

    if (!s->in_word)
        return DT_OK;
    s->in_word = s->open = s->quoted = false;
    word.text = dt_arena_strdup(s->script->arena, s->word.data);
    dt_strbuf_reset(&s->word);
    return dt_shell_add_word(&s->command, &word, s->script->arena, s->err);
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

dt_status dt_shell_take(dt_shell_script *script, char *const *words, size_t count, dt_error *err)
{
    dt_shell_command command = {0};
    dt_status st = DT_OK;

    for (size_t i = 0; i < count && st == DT_OK; i++) {
        dt_shell_word word = {.text = words[i]};

        st = dt_shell_check_text(words[i], strlen(words[i]), "the command line", err);
        if (st == DT_OK)
            st = dt_shell_add_word(&command, &word, script->arena, err);
    }
    if (st == DT_OK)
        dt_shell_add_command(script, &command);
    return st;
}
