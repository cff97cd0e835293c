/* reading: files and paths of a recipe, and the fields and errors of a recipe while it is read. */
#include "recipes/read/reading.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "recipes/fields/text.h"
#include "recipes/fields/values.h"
#include "recipes/read/read_int.h"
#include "recipes/read/reader.h"

/* --- paths */

dt_status dt_path_current(const char **out, dt_arena *arena, dt_error *err)
{
    char *current = getcwd(NULL, 0);

    if (current == NULL)
        return DT_FAIL(err, DT_ERR_IO, "cannot find the current folder: %s", strerror(errno));
    *out = dt_arena_strdup(arena, current);
    free(current);
    return DT_OK;
}

dt_status dt_path_folder(const char **out, const char *file, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    const char *slash = strrchr(file, '/');
    const char *current, *folder;

    if (slash == NULL || strncmp(file, "/dev/", 5) == 0) /* /dev/stdin has no folder */
        return dt_path_current(out, arena, err);
    if (slash == file) {
        *out = "/";
        return DT_OK;
    }
    folder = dt_arena_strndup(arena, file, (size_t)(slash - file));
    DT_TRY(dt_path_current(&current, arena, err));
    DT_TRY(dt_path_resolve(out, folder, current, arena, err));
out:
    return st;
}

static const char *without_dots(const char *path)
{
    while (path[0] == '.' && path[1] == '/')
        for (path += 2; *path == '/';)
            path++;
    return path;
}

dt_status dt_path_resolve(const char **out, const char *path, const char *folder, dt_arena *arena,
                          dt_error *err)
{
    dt_status st = DT_OK;
    const char *between;

    if (strncmp(path, "~/", 2) == 0) {
        folder = getenv("HOME");
        if (folder == NULL || folder[0] != '/')
            DT_THROW(err, DT_ERR_RECIPE, "'~/' needs HOME to be set to an absolute path");
        path += 2;
    }
    if (path[0] == '/') {
        *out = dt_arena_strdup(arena, path);
    } else {
        between = folder[strlen(folder) - 1] == '/' ? "" : "/";
        *out = dt_arena_printf(arena, "%s%s%s", folder, between, without_dots(path));
    }
    if (!dt_text_is_utf8(*out))
        DT_THROW(
            err, DT_ERR_RECIPE,
            "the folder of a relative path has a name that is not UTF-8: use an absolute path");
out:
    return st;
}

/* --- the file of a recipe */

#define RECIPE_BYTES_MAX ((size_t)1 << 20)

dt_status dt_recipe_source_read(dt_recipe_source *out, const char *path, dt_arena *arena,
                                dt_error *err)
{
    dt_error cause = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_strbuf text;

    memset(out, 0, sizeof(*out));
    dt_strbuf_init(&text);
    if (strcmp(path, "-") == 0) {
        path = "/dev/stdin";
        st = dt_file_read_fd(&text, STDIN_FILENO, path, RECIPE_BYTES_MAX, &cause);
    } else {
        st = dt_file_read(&text, path, RECIPE_BYTES_MAX, &cause);
    }
    if (st == DT_ERR_UNSUPPORTED)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' is larger than 1 MiB: a recipe is a page of text (is this the data?)", path);
    if (st != DT_OK) /* a wrong path counts as an error of the recipe */
        DT_THROW(err, DT_ERR_RECIPE, "%s", cause.message);
    if (memchr(text.data, '\0', text.length) != NULL)
        DT_TRY(dt_text_check(text.data, text.length, &(dt_text_mark){path, 1, 1},
                             err)); /* reports the position */
    out->path = dt_arena_strdup(arena, path);
    out->text = dt_arena_strndup(arena, text.data, text.length);
out:
    dt_strbuf_release(&text);
    return st;
}

/* --- fields and errors */

/* --- fields --- */

size_t dt_reading_row(const char *path)
{
    const dt_field *field = dt_field_find(path);

    DT_ASSERT(field != NULL);
    return (size_t)(field - dt_fields);
}

bool dt_reading_given(const dt_reading *reading, const char *path)
{
    return reading->field[dt_reading_row(path)].source != NULL;
}

const dt_text_mark *dt_reading_mark(const dt_reading *reading, const char *path)
{
    size_t row = dt_reading_row(path);

    return reading->field[row].source != NULL ? &reading->field[row] : &reading->group[row];
}

const dt_text_mark *dt_reading_item_mark(const dt_reading *reading, const char *path, int64_t index)
{
    const dt_yaml_node *node = reading->node[dt_reading_row(path)];
    const dt_yaml_node *item =
        node != NULL && node->kind != DT_YAML_SCALAR && index >= 0 ? node->first : NULL;

    for (; item != NULL && index > 0; index--)
        item = item->next;
    if (item == NULL)
        return dt_reading_mark(reading, path);
    return item->key != NULL ? &item->key->mark : &item->mark;
}

bool dt_reading_written(const dt_reading *reading, const char *path)
{
    size_t row = dt_reading_row(path);

    return reading->node[row] != NULL && reading->field[row].source != reading->resolved;
}

int dt_reading_later(const dt_reading *reading, const char *path, const char *than)
{
    return reading->layer_of[dt_reading_row(path)] - reading->layer_of[dt_reading_row(than)];
}

bool dt_reading_resolved(const dt_reading *reading, const char *path)
{
    return reading->resolved != NULL && dt_reading_mark(reading, path)->source == reading->resolved;
}

void dt_reading_derived(dt_reading *reading, const char *path, const char *text, const char *from)
{
    const dt_text_mark mark = *dt_reading_mark(reading, from);

    reading->field[dt_reading_row(path)] = mark;
    dt_origins_add(reading->origins, dt_field_find(path), text, &mark, from, reading->arena);
}

/* --- errors */

void dt_reading_trouble(dt_reading *reading, const char *path)
{
    for (size_t i = 0; i < dt_fields_count; i++)
        if (strcmp(dt_fields[i].path, path) == 0 || dt_field_below(&dt_fields[i], path))
            reading->troubled[i] = true;
}

dt_status dt_reading_report(const dt_reading *reading, dt_status st, const char *rule)
{
    dt_problem *problem;

    if (st != DT_ERR_RECIPE || reading->err->code == DT_OK)
        return st;
    problem = dt_problems_add(reading->problems, reading->err, rule, false,
                              reading->origins->sources, reading->origins->sources_count);
    if (problem != NULL)
        problem->absent = strcmp(rule, "missing") == 0;
    dt_error_clear(reading->err);
    return dt_problems_full(reading->problems) ? DT_ERR_RECIPE : DT_OK;
}

dt_status dt_reading_refuse(const dt_reading *reading, const dt_text_mark *mark, dt_strbuf *text)
{
    DT_FAIL(reading->err, DT_ERR_RECIPE, "%s", text->data);
    dt_text_mark_prefix(reading->err, mark);
    dt_strbuf_release(text);
    return DT_ERR_RECIPE;
}

dt_status dt_reading_refuse_twice(const dt_reading *reading, const dt_text_mark *mark,
                                  const char *what, const char *name, const dt_text_mark *first)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "%s ", what);
    dt_text_show(&text, name);
    dt_strbuf_add_str(&text, " (first at ");
    dt_text_mark_write(&text, first);
    dt_strbuf_add_str(&text, ")");
    return dt_reading_refuse(reading, mark, &text);
}

dt_status dt_reading_refuse_nothing(const dt_reading *reading, const char *path,
                                    const dt_yaml_node *node)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "'%s' has no value: fill it in, or remove the key", path);
    return dt_reading_refuse(reading, &node->mark, &text);
}
