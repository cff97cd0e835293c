/* run_value: finds the value of a key for a run, and the keys in which the recipes of runs differ. */
#include "runner/view/runs/runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "recipes/fields/fields.h"
#include "runner/cli/options.h"
#include "runner/term/term.h"
#include "store/curve.h"

static dt_run_value missing(void)
{
    return (dt_run_value){.text = ""};
}

static dt_run_value of_text(const char *text)
{
    return text[0] != '\0' ? (dt_run_value){.there = true, .text = text} : missing();
}

static dt_run_value of_number(double number, dt_arena *arena)
{
    char text[DT_FORMAT_SIZE];
    const char *copy = dt_arena_strdup(arena, dt_format_exact(text, sizeof(text), number));

    if (isinf(number))
        return (dt_run_value){true, true, INFINITY, "nan"};
    return isnan(number) ? missing() : (dt_run_value){true, true, number, copy};
}

/* Converts a value of a recipe. */
static dt_run_value run_value_of_json(const json_t *value, dt_arena *arena)
{
    dt_run_value out = missing();
    const char *copy;
    dt_strbuf text;

    if (json_is_number(value))
        out = of_number(json_number_value(value), arena);
    if (json_is_integer(value)) {
        out.text = dt_arena_printf(arena, "%lld", (long long)json_integer_value(value));
    }
    if (json_is_number(value))
        return out;
    if (json_array_size(value) == 1)
        value = json_array_get(value, 0);
    if (value == NULL || json_is_null(value))
        return out;
    if (json_is_boolean(value))
        return of_text(json_is_true(value) ? "true" : "false");
    dt_strbuf_init(&text);
    if (json_is_string(value))
        dt_strbuf_add_str(&text, json_string_value(value));
    else
        dt_json_write(&text, value);
    copy = dt_arena_strdup(arena, text.data);
    dt_strbuf_release(&text);
    return of_text(copy);
}

/* Returns the recipe, borrowed; JSON null if it cannot be parsed. */
static const json_t *run_entry_recipe(dt_run_entry *entry)
{
    const char *text = entry->run->recipe_json;

    if (entry->recipe == NULL &&
        dt_json_parse(&entry->recipe, text, strlen(text), "stored recipe", NULL) != DT_OK)
        entry->recipe = json_null();
    return entry->recipe;
}

bool dt_run_entry_has_recipe(dt_run_entry *entry)
{
    return json_object_size(run_entry_recipe(entry)) > 0;
}

void dt_run_entry_release(dt_run_entry *entry)
{
    json_decref(entry->recipe);
    entry->recipe = NULL;
}

/* --- properties of the run itself */

static dt_run_value of_time(int64_t wall_ms, dt_arena *arena)
{
    char time[DT_CLOCK_ISO_SIZE];
    const char *copy = dt_arena_strdup(arena, dt_clock_iso(time, wall_ms));

    return wall_ms > 0 ? of_text(copy) : missing();
}

static bool own(dt_run_value *out, const dt_run *run, const char *key, dt_arena *arena)
{
    const struct {
        const char *key, *text;
    } texts[] = {
        {"run", run->id},        {"name", run->name},     {"state", dt_run_state_name(run->state)},
        {"tags", run->tags},     {"group", run->group},   {"note", run->note},
        {"parent", run->parent}, {"reason", run->reason}, {"recipe_path", run->recipe_path}};
    const struct {
        const char *key;
        double number;
    } numbers[] = {{"step", (double)run->step},
                   {"steps_total", run->steps_total > 0 ? (double)run->steps_total : NAN},
                   {"attempt", (double)run->attempt},
                   {"loss", run->loss},
                   {"valid_loss", run->valid_loss},
                   {"tokens_per_second", run->tokens_per_second},
                   {"exit_code", run->exit_code >= 0 ? (double)run->exit_code : NAN},
                   {"elapsed", dt_run_elapsed_seconds(run, dt_clock_wall_ms())}};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcmp(texts[i].key, key) == 0) {
            *out = of_text(texts[i].text);
            return true;
        }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (strcmp(numbers[i].key, key) == 0) {
            *out = of_number(numbers[i].number, arena);
            return true;
        }
    if (strcmp(key, "created") != 0 && strcmp(key, "started") != 0 && strcmp(key, "ended") != 0)
        return false;
    *out = of_time(key[0] == 'c'   ? run->created_ms
                   : key[0] == 's' ? run->started_ms
                                   : run->ended_ms,
                   arena);
    return true;
}

/* --- recipe fields and metrics */

static const json_t *find_field(const json_t *recipe, const char *key)
{
    while (json_is_object(recipe)) {
        size_t length = strcspn(key, ".");
        char part[64];

        if (length == 0 || length >= sizeof(part))
            return NULL;
        memcpy(part, key, length);
        part[length] = '\0';
        recipe = json_object_get(recipe, part);
        if (key[length] == '\0')
            return json_is_object(recipe) ? NULL : recipe;
        key += length + 1;
    }
    return NULL;
}

/* Splits "valid_loss.min" into the metric valid_loss and which value is wanted. */
static dt_metric_which split_metric(char *name, size_t size, const char *key)
{
    size_t length = strlen(key);
    dt_metric_which which = DT_METRIC_LAST;

    if (length > 4 && strcmp(key + length - 4, ".min") == 0)
        which = DT_METRIC_LOWEST;
    else if (length > 4 && strcmp(key + length - 4, ".max") == 0)
        which = DT_METRIC_HIGHEST;
    length -= which != DT_METRIC_LAST ? 4 : 0;
    length = length < size ? length : size - 1;
    memcpy(name, key, length);
    name[length] = '\0';
    return which;
}

dt_status dt_run_value_get(dt_run_value *out, dt_store *store, dt_run_entry *entry, const char *key,
                           dt_arena *arena, dt_error *err)
{
    const json_t *field;
    dt_metric_which which;
    dt_status st = DT_OK;
    dt_metric_end end;
    char name[128];

    if (own(out, entry->run, key, arena))
        return DT_OK;
    field = find_field(run_entry_recipe(entry), key);
    if (field != NULL) {
        *out = run_value_of_json(field, arena);
        return DT_OK;
    }
    which = split_metric(name, sizeof(name), key);
    DT_TRY(dt_store_metric_end(store, &end, entry->run->id, name, which, err));
    *out = !end.there ? missing() : of_number(isnan(end.value) ? INFINITY : end.value, arena);
out:
    return st;
}

dt_status dt_run_key_check(dt_store *store, const char *key, dt_error *err)
{
    const char *names[DT_FIELDS_MAX + 1] = {NULL}, *meant;
    static const dt_run nothing = {.id = "",
                                   .name = "",
                                   .tags = "",
                                   .group = "",
                                   .note = "",
                                   .parent = "",
                                   .reason = "",
                                   .recipe_path = "",
                                   .boot_id = ""};
    dt_run_value ignored;
    char name[128];
    dt_arena arena;
    bool known;
    dt_status st = DT_OK;

    dt_arena_init(&arena, 512);
    known = own(&ignored, &nothing, key, &arena);
    dt_arena_release(&arena);
    for (size_t i = 0; i < dt_fields_count; i++) {
        known = known || strcmp(dt_fields[i].path, key) == 0;
        names[i] = dt_fields[i].path;
    }
    if (known)
        return DT_OK;
    (void)split_metric(name, sizeof(name), key);
    DT_TRY(dt_store_metric_known(store, &known, name, err));
    if (known)
        return DT_OK;
    meant = dt_suggest(key, names);
    if (meant != NULL)
        DT_THROW(err, DT_ERR_USAGE, "no run has '%s' (did you mean '%s'?)", key, meant);
    DT_THROW(err, DT_ERR_USAGE,
             "no run has '%s'; expected a recipe key, a metric, or a key of 'dtrun list --json'",
             key);
out:
    return st;
}

int dt_run_value_order(const dt_run_value *a, const dt_run_value *b)
{
    if (a->there != b->there)
        return a->there ? -1 : 1;
    if (a->is_number != b->is_number)
        return a->is_number ? -1 : 1;
    if (a->is_number)
        return a->number < b->number ? -1 : a->number > b->number;
    return strcmp(a->text, b->text);
}

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
        const json_t *a = run_entry_recipe(&entries[first]);
        const json_t *b = run_entry_recipe(&entries[i]);
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
            walk(&out, "", run_entry_recipe(&entries[first]), run_entry_recipe(&entries[i]));
    *keys = out.keys;
    *count = out.count;
}
