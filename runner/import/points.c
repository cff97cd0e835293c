#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/display.h"
#include "runner/import/import.h"

void dt_imported_init(dt_imported *out, dt_arena *arena)
{
    *out = (dt_imported){.arena = arena};
}

void dt_imported_release(dt_imported *imported)
{
    free(imported->points);
    imported->points = NULL;
}

static void names_grow(dt_import_names *names, dt_arena *arena)
{
    int32_t capacity = names->capacity > 0 ? names->capacity * 2 : 16;
    const char **larger = dt_arena_alloc_array(arena, (size_t)capacity, sizeof(larger[0]));

    if (names->count > 0)
        memcpy(larger, names->items, (size_t)names->count * sizeof(larger[0]));
    names->items = larger;
    names->capacity = capacity;
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

void dt_import_name(int32_t *out, dt_import_names *names, const char *name, dt_arena *arena)
{
    const char *clean = shown(name, arena);

    for (*out = 0; *out < names->count; (*out)++)
        if (strcmp(names->items[*out], clean) == 0)
            return;
    if (names->count == names->capacity)
        names_grow(names, arena);
    names->items[names->count++] = clean;
}

void dt_import_recipe(dt_imported *imported, int32_t run, const char *json)
{
    dt_import_names *recipes = &imported->recipes;

    while (recipes->count <= run) {
        if (recipes->count == recipes->capacity)
            names_grow(recipes, imported->arena);
        recipes->items[recipes->count++] = "{}";
    }
    recipes->items[run] = dt_arena_strdup(imported->arena, json);
}

dt_status dt_import_add(dt_imported *imported, const dt_import_point *point, dt_error *err)
{
    if (imported->count == DT_IMPORT_POINTS_MOST)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED, "more than %d points: split the file",
                       DT_IMPORT_POINTS_MOST);
    if (imported->count == imported->capacity) {
        imported->capacity = imported->capacity > 0 ? imported->capacity * 2 : 4096;
        imported->points =
            dt_realloc(imported->points, (size_t)imported->capacity, sizeof(imported->points[0]));
    }
    imported->points[imported->count] = *point;
    imported->points[imported->count].number = imported->count;
    imported->count++;
    return DT_OK;
}
