#include "runner/view/runs/recipe_diff.h"

#include <stdio.h>
#include <string.h>

#include "recipes/fields/fields.h"

enum { KEY_BYTES = 160, KEYS_MOST = 4 * DT_FIELDS_MAX };

typedef struct diff {
    const char **keys;
    size_t count;
    dt_arena *arena;
} diff;

static bool is_left_out(const char *key)
{
    static const char *const keys[] = {"name", "recipe", "notify"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static void add_key(diff *out, const char *key)
{
    for (size_t i = 0; i < out->count; i++)
        if (strcmp(out->keys[i], key) == 0)
            return;
    if (out->count == KEYS_MOST)
        return;
    out->keys[out->count++] = dt_arena_strdup(out->arena, key);
}

static bool same(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

static void walk(diff *out, const char *path, const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)a, key, value) {
        const json_t *other = json_object_get(b, key);
        char below[KEY_BYTES];

        if (other == NULL || (path[0] == '\0' && is_left_out(key)))
            continue;
        snprintf(below, sizeof(below), "%s%s%s", path, path[0] != '\0' ? "." : "", key);
        if (json_is_object(value) && json_is_object(other))
            walk(out, below, value, other);
        else if (!same(value, other))
            add_key(out, below);
    }
}

/* Returns true if the run has the recipe of the run before it, or of the first one: most have. */
static bool is_known(const dt_run_entry *entries, size_t i, size_t first)
{
    const char *hash = entries[i].run->recipe_hash;

    return hash[0] != '\0' && (strcmp(hash, entries[i - 1].run->recipe_hash) == 0 ||
                               strcmp(hash, entries[first].run->recipe_hash) == 0);
}

static size_t first_with_recipe(dt_run_entry *entries, size_t runs)
{
    size_t first = 0;

    while (first < runs && !dt_run_entry_has_recipe(&entries[first]))
        first++;
    return first;
}

/* Counts the fields of a that b has too, and those that b lacks. */
static void count_fields(size_t *shared, size_t *lacking, const json_t *a, const json_t *b,
                         bool top)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)a, key, value) {
        const json_t *other = json_object_get(b, key);

        if (top && is_left_out(key))
            continue;
        if (json_is_object(value) && json_is_object(other))
            count_fields(shared, lacking, value, other, false);
        else
            *(other != NULL ? shared : lacking) += 1;
    }
}

dt_recipe_overlap dt_recipe_compare_fields(dt_run_entry *entries, size_t runs)
{
    size_t first = first_with_recipe(entries, runs), compared = 0;
    dt_recipe_overlap overlap = DT_RECIPES_WHOLE;

    for (size_t i = first + 1; i < runs; i++) {
        const json_t *a = dt_run_entry_recipe(&entries[first]);
        const json_t *b = dt_run_entry_recipe(&entries[i]);
        size_t shared = 0, lacking = 0;

        if (!dt_run_entry_has_recipe(&entries[i]))
            continue;
        compared++;
        count_fields(&shared, &lacking, a, b, true);
        count_fields(&shared, &lacking, b, a, true);
        if (shared == 0 && lacking > 0)
            return DT_RECIPES_APART;
        if (lacking > 0)
            overlap = DT_RECIPES_PARTLY;
    }
    return compared > 0 ? overlap : DT_RECIPES_MISSING;
}

void dt_recipe_diff(const char ***keys, size_t *count, dt_run_entry *entries, size_t runs,
                    dt_arena *arena)
{
    diff out = {.arena = arena};
    size_t first = first_with_recipe(entries, runs);

    out.keys = dt_arena_alloc_array(arena, KEYS_MOST, sizeof(out.keys[0]));
    for (size_t i = first + 1; i < runs; i++)
        if (!is_known(entries, i, first))
            walk(&out, "", dt_run_entry_recipe(&entries[first]), dt_run_entry_recipe(&entries[i]));
    *keys = out.keys;
    *count = out.count;
}
