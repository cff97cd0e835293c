/* locate: finds the position in the recipe of the files in a message (recipes/read/reader.h). */
#include <string.h>

#include "recipes/read/reader.h"
#include "recipes/read/reading.h"

/* Returns whether the message quotes the file, or a file that may match the pattern. */
static bool is_about(const char *message, const char *item)
{
    size_t literal = strcspn(item, "*?[");

    for (const char *at = strchr(message, '\''); at != NULL; at = strchr(at + 1, '\''))
        if (literal > 0 && strncmp(at + 1, item, literal) == 0 &&
            (item[literal] != '\0' || at[1 + literal] == '\''))
            return true;
    return false;
}

/* Finds the mark of the list item that the message is about. */
static bool locate_item(dt_text_mark *out, const dt_reading *reading, const char *path,
                        const dt_string_list *list, const char *message)
{
    const dt_yaml_node *node = reading->node[dt_reading_row(path)];
    const dt_yaml_node *item = node != NULL && node->kind == DT_YAML_LIST ? node->first : node;

    for (int64_t i = 0; i < list->count && item != NULL; i++, item = item->next)
        if (is_about(message, list->items[i])) {
            *out = item->mark;
            return true;
        }
    return false;
}

/* Finds the first field that the message names and the recipe sets; data.train if there is none. Paths without a dot
 * are words of other texts too. */
static const dt_text_mark *locate_field(const dt_reading *reading, const char *message)
{
    const char *first = NULL, *path = "data.train";

    for (size_t i = 0; i < dt_fields_count; i++) {
        const char *at = strchr(dt_fields[i].path, '.') != NULL && reading->node[i] != NULL
                             ? strstr(message, dt_fields[i].path)
                             : NULL;

        if (at == NULL || (first != NULL && at > first) ||
            (at == first && strlen(dt_fields[i].path) < strlen(path)))
            continue;
        first = at;
        path = dt_fields[i].path;
    }
    return dt_reading_mark(reading, path);
}

void dt_recipe_locate_data(dt_error *err, const dt_recipe_source *source, dt_arena *arena)
{
    dt_error ignored = DT_ERROR_INIT;
    dt_recipe recipe;
    dt_problems problems;
    dt_reading reading = {.recipe = &recipe, .arena = arena, .problems = &problems};
    dt_text_mark mark = {source->path, 0, 0};

    dt_problems_init(&problems, arena);
    if (dt_reading_source(&reading, source, &ignored) == DT_OK &&
        !locate_item(&mark, &reading, "data.train", &recipe.data.train, err->message) &&
        !locate_item(&mark, &reading, "data.validation", &recipe.data.validation, err->message))
        mark = *locate_field(&reading, err->message);
    if (!source->unwritten)
        dt_text_mark_prefix(err, &mark);
}

void dt_recipe_locate_lines(dt_error *err, const dt_recipe_source *source, dt_arena *arena)
{
    dt_error ignored = DT_ERROR_INIT;
    dt_recipe recipe;
    dt_problems problems;
    dt_reading reading = {.recipe = &recipe, .arena = arena, .problems = &problems};
    dt_text_mark mark = {source->path, 0, 0};
    const struct {
        const char *path, *const *value;
    } fields[] = {{"lines.run", &recipe.lines.run},
                  {"lines.output", &recipe.lines.output},
                  {"lines.target", &recipe.lines.target},
                  {"lines.input", &recipe.lines.input}};

    dt_problems_init(&problems, arena);
    if (dt_reading_source(&reading, source, &ignored) == DT_OK)
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
            if (strstr(err->message, fields[i].path) != NULL ||
                is_about(err->message, *fields[i].value)) {
                mark = *dt_reading_mark(&reading, fields[i].path);
                break;
            }
    dt_text_mark_prefix(err, &mark);
}
