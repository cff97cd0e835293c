#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "runner/import/import.h"

#include "base/banned.h"

void dt_imported_init(dt_imported *out, dt_arena *arena)
{
    *out = (dt_imported){.arena = arena};
}

void dt_imported_release(dt_imported *imported)
{
    free(imported->points);
    imported->points = NULL;
}

static dt_status names_grow(dt_import_names *names, dt_arena *arena, dt_error *err)
{
    int32_t capacity = names->capacity > 0 ? names->capacity * 2 : 16;
    const char **larger = dt_arena_alloc_array(arena, (size_t)capacity, sizeof(larger[0]));

    if (larger == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    if (names->count > 0)
        memcpy(larger, names->items, (size_t)names->count * sizeof(larger[0]));
    names->items = larger;
    names->capacity = capacity;
    return DT_OK;
}

static const char *shown(const char *name, dt_arena *arena)
{
    const char *copy;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_display_add(&text, name, strlen(name));
    for (size_t i = 0; i < text.length; i++)
        if (text.data[i] == '\n' || text.data[i] == '\t')
            text.data[i] = ' ';
    copy = dt_arena_strdup(arena, text.data);
    dt_strbuf_release(&text);
    return copy;
}

dt_status dt_import_name(int32_t *out, dt_import_names *names, const char *name, dt_arena *arena,
                         dt_error *err)
{
    const char *clean = shown(name, arena);
    dt_status st = DT_OK;

    if (clean == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    for (*out = 0; *out < names->count; (*out)++)
        if (strcmp(names->items[*out], clean) == 0)
            return DT_OK;
    if (names->count == names->capacity)
        DT_TRY(names_grow(names, arena, err));
    names->items[names->count++] = clean;
out:
    return st;
}

dt_status dt_import_recipe(dt_imported *imported, int32_t run, const char *json, dt_error *err)
{
    dt_import_names *recipes = &imported->recipes;
    dt_status st = DT_OK;

    while (recipes->count <= run) {
        if (recipes->count == recipes->capacity)
            DT_TRY(names_grow(recipes, imported->arena, err));
        recipes->items[recipes->count++] = "{}";
    }
    recipes->items[run] = dt_arena_strdup(imported->arena, json);
    if (recipes->items[run] == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
out:
    return st;
}

dt_status dt_import_add(dt_imported *imported, const dt_import_point *point, dt_error *err)
{
    if (imported->count == DT_IMPORT_POINTS_MOST)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED, "more than %d points: split the file",
                       DT_IMPORT_POINTS_MOST);
    if (imported->count == imported->capacity) {
        int64_t capacity = imported->capacity > 0 ? imported->capacity * 2 : 4096;
        dt_import_point *larger = realloc(imported->points, (size_t)capacity * sizeof(larger[0]));

        if (larger == NULL)
            return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %lld points", (long long)capacity);
        imported->points = larger;
        imported->capacity = capacity;
    }
    imported->points[imported->count] = *point;
    imported->points[imported->count].number = imported->count;
    imported->count++;
    return DT_OK;
}
