#include "runner/convert/words.h"

#include <ctype.h>
#include <string.h>

#include "base/utf8.h"

enum { WORDS_MOST = 65536 };

void *dt_shell_grow(void *items, size_t count, size_t *capacity, size_t bytes, dt_arena *arena)
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
    if (command->count >= WORDS_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "a command has more than %d words", WORDS_MOST);
    command->words = dt_shell_grow(command->words, command->count, &command->capacity,
                                   sizeof(command->words[0]), arena);
    command->words[command->count++] = *word;
    return DT_OK;
}

void dt_shell_add_to(dt_shell_words *words, const char *text, size_t length, int line,
                     dt_arena *arena)
{
    words->items =
        dt_shell_grow(words->items, words->count, &words->capacity, sizeof(words->items[0]), arena);
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
