/* derive_command: sets the fields of a recipe with a command that follow from it (recipes/read/reading.h). */
#include <string.h>

#include "recipes/read/reading.h"

/* Characters that mean something to a shell, and would be passed on as they are. */
#define OF_A_SHELL "|&;<>()$`"

/* A field that is a command, or the words that continue one, written as text. */
typedef struct text_field {
    dt_reading *reading;
    const char *path;
    const dt_yaml_node *node;
} text_field;

static dt_status refuse(const text_field *field, const char *message)
{
    DT_FAIL(field->reading->err, DT_ERR_RECIPE, "'%s' has %s", field->path, message);
    dt_text_mark_prefix(field->reading->err, &field->node->mark);
    dt_reading_trouble(field->reading, field->path);
    return DT_ERR_RECIPE;
}

/* Reads a quoted part of a word, from the quote on. Returns its end; NULL: the quote is not closed. In double
 * quotes a backslash escapes a quote and itself. */
static const char *read_quoted(dt_strbuf *word, const char *at)
{
    char quote = *at++;

    for (; *at != '\0' && *at != quote; at++) {
        if (quote == '"' && at[0] == '\\' && (at[1] == '"' || at[1] == '\\'))
            at++;
        dt_strbuf_add_char(word, *at);
    }
    return *at == quote ? at + 1 : NULL;
}

/* Reads a word into `word`, with quotes as in a shell. Returns its end. */
static dt_status read_word(dt_strbuf *word, const char **io, const text_field *field)
{
    const char *at = *io;

    dt_strbuf_reset(word);
    while (*at != '\0' && strchr(" \t\n", *at) == NULL) {
        if (*at == '\'' || *at == '"') {
            at = read_quoted(word, at);
            if (at == NULL)
                return refuse(field, "a quote that is not closed");
            continue;
        }
        if (strchr(OF_A_SHELL, *at) != NULL)
            return refuse(field, dt_arena_printf(field->reading->arena,
                                                 "'%c', which only a shell understands: set "
                                                 "'shell: true', or put it in quotes",
                                                 *at));
        if (at[0] == '\\' && at[1] != '\0')
            at++;
        dt_strbuf_add_char(word, *at++);
    }
    *io = at;
    return DT_OK;
}

/* Splits the text into words. */
static dt_status split(dt_string_list *out, const text_field *field)
{
    const char *at = field->node->text, **items;
    dt_arena *arena = field->reading->arena;
    dt_status st = DT_OK;
    dt_strbuf word;

    dt_strbuf_init(&word);
    items = dt_arena_alloc_array(arena, strlen(at) / 2 + 2, sizeof(*items));
    *out = (dt_string_list){items, 0};
    for (at += strspn(at, " \t\n"); *at != '\0'; at += strspn(at, " \t\n")) {
        DT_TRY(read_word(&word, &at, field));
        items[out->count++] = dt_arena_strndup(arena, word.data, word.length);
    }
out:
    dt_strbuf_release(&word);
    return st;
}

/* Sets the words of a field that was written as text; a list has them already. */
static dt_status derive_words(dt_string_list *out, dt_reading *reading, const char *path)
{
    const text_field field = {reading, path, reading->node[dt_reading_row(path)]};

    if (field.node == NULL || field.node->kind != DT_YAML_SCALAR || reading->recipe->shell ||
        reading->troubled[dt_reading_row(path)])
        return DT_OK;
    return split(out, &field);
}

/* Sets the folder in which the command runs: that of the recipe. */
static dt_status derive_folder(dt_reading *reading)
{
    dt_recipe *recipe = reading->recipe;

    if (recipe->workdir.folder[0] != '\0')
        return DT_OK;
    recipe->workdir.folder = dt_arena_strdup(reading->arena, reading->recipe_folder);
    dt_reading_derived(reading, "workdir.folder", recipe->workdir.folder, "command");
    return DT_OK;
}

dt_status dt_reading_derive_command(dt_reading *reading)
{
    dt_recipe *recipe = reading->recipe;
    dt_status st = DT_OK;

    if (!dt_reading_given(reading, "task") && dt_reading_given(reading, "command")) {
        recipe->task = DT_TASK_COMMAND;
        dt_reading_derived(reading, "task", "command", "command");
    }
    /* the rule "command" refuses another task */
    if (recipe->task != DT_TASK_COMMAND || reading->troubled[dt_reading_row("command")])
        return DT_OK;
    if (!dt_reading_given(reading, "failure.max_restarts") && recipe->checkpoints.path[0] == '\0') {
        /* only the program knows whether it can continue where it ended */
        recipe->failure.max_restarts = 0;
        dt_reading_derived(reading, "failure.max_restarts", "0", "command");
    }
    if (!dt_reading_given(reading, "failure.hang_seconds")) {
        /* only the user knows how long the program may be quiet */
        recipe->failure.hang_seconds = 0;
        dt_reading_derived(reading, "failure.hang_seconds", "0", "command");
    }
    st = derive_words(&recipe->command, reading, "command");
    DT_TRY(dt_reading_report(reading, st, "value"));
    st = derive_words(&recipe->resume, reading, "resume");
    DT_TRY(dt_reading_report(reading, st, "value"));
    DT_TRY(derive_folder(reading));
out:
    return st;
}
