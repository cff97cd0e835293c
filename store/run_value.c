/* run_value: finds the value of a key for a run, and the keys in which the recipes of runs differ. */
#include "store/run_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/display.h"
#include "store/curve.h"
#include "store/store_int.h"

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

/* What a key asks of a metric. */
typedef struct asked {
    char name[128];
    dt_metric_which which;
    int64_t until; /* the last step that counts; INT64_MAX: all */
} asked;

/* Splits "valid_loss.min" and "valid_loss@1000". */
static void split_metric(asked *out, const char *key)
{
    size_t length = strlen(key);
    const char *at = strrchr(key, '@');
    char *end = NULL;

    out->which = DT_METRIC_LAST;
    out->until = INT64_MAX;
    if (at != NULL && at[1] >= '0' && at[1] <= '9' && strlen(at) < 18) {
        int64_t step = strtoll(at + 1, &end, 10);

        if (*end == '\0') {
            out->until = step;
            length = (size_t)(at - key);
        }
    } else if (length > 4 && strcmp(key + length - 4, ".min") == 0) {
        out->which = DT_METRIC_LOWEST;
    } else if (length > 4 && strcmp(key + length - 4, ".max") == 0) {
        out->which = DT_METRIC_HIGHEST;
    }
    length -= out->which != DT_METRIC_LAST ? 4 : 0;
    length = length < sizeof(out->name) ? length : sizeof(out->name) - 1;
    memcpy(out->name, key, length);
    out->name[length] = '\0';
}

/* Reads the points up to a step as one bucket, which the pyramid has without reading them. points 0: there are none. */
static dt_status bucket_read(dt_bucket *out, dt_store *store, const char *run, const asked *a,
                             dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_store_curves curves;
    dt_bucket *buckets;
    dt_status st = DT_OK;
    int64_t count = 0;
    dt_arena arena;

    *out = (dt_bucket){0};
    dt_arena_init(&arena, 1024);
    st = dt_store_curves_find(store, &curves, run, a->name, &arena, &problem);
    if (st != DT_OK) { /* a run that is not there has no points */
        st = st == DT_ERR_NOT_FOUND ? DT_OK : DT_FAIL(err, st, "%s", problem.message);
        goto out;
    }
    if (curves.count > 0)
        DT_TRY(dt_store_curve_buckets(store, &buckets, &count, &curves, 0, 0, a->until, 1, &arena,
                                      err));
    if (count > 0)
        *out = buckets[0];
out:
    dt_arena_release(&arena);
    return st;
}

static dt_status metric_read(dt_metric_end *out, dt_store *store, const char *run, const asked *a,
                             dt_error *err)
{
    dt_status st = DT_OK;
    dt_bucket bucket;

    if (a->which == DT_METRIC_LAST && a->until == INT64_MAX)
        return dt_store_metric_end(store, out, run, a->name, a->which, err);
    DT_TRY(bucket_read(&bucket, store, run, a, err));
    /* an infinite value may be the extreme; a store that other programs wrote may have no pyramid */
    if ((bucket.not_finite > 0 || bucket.points == 0) && a->which != DT_METRIC_LAST)
        return dt_store_metric_end(store, out, run, a->name, a->which, err);
    out->there = bucket.points > 0;
    out->step = bucket.last_step;
    out->value = a->which == DT_METRIC_LOWEST    ? bucket.min
                 : a->which == DT_METRIC_HIGHEST ? bucket.max
                                                 : bucket.last;
out:
    return st;
}

dt_status dt_run_value_get(dt_run_value *out, dt_store *store, dt_run_entry *entry, const char *key,
                           dt_arena *arena, dt_error *err)
{
    const json_t *field;
    dt_status st = DT_OK;
    dt_metric_end end;
    asked a;

    if (own(out, entry->run, key, arena))
        return DT_OK;
    field = find_field(run_entry_recipe(entry), key);
    if (field != NULL) {
        *out = run_value_of_json(field, arena);
        return DT_OK;
    }
    split_metric(&a, key);
    DT_TRY(metric_read(&end, store, entry->run->id, &a, err));
    *out = !end.there ? missing() : of_number(isnan(end.value) ? INFINITY : end.value, arena);
out:
    return st;
}

/* --- keys that exist */

const dt_run dt_run_nothing = {.id = "",
                               .name = "",
                               .tags = "",
                               .group = "",
                               .note = "",
                               .parent = "",
                               .reason = "",
                               .recipe_path = "",
                               .recipe_json = "",
                               .boot_id = "",
                               .state = DT_RUN_FINISHED};

bool dt_run_key_is_own(const char *key)
{
    dt_run_value ignored;
    dt_arena arena;
    bool known;

    dt_arena_init(&arena, 512);
    known = own(&ignored, &dt_run_nothing, key, &arena);
    dt_arena_release(&arena);
    return known;
}

dt_status dt_run_key_is_metric(dt_store *store, bool *known, const char *key, dt_error *err)
{
    asked a;

    split_metric(&a, key);
    return dt_store_metric_known(store, known, a.name, err);
}

dt_status dt_run_key_known(dt_store *store, bool *known, const char *key, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf path;
    int64_t one;

    dt_strbuf_init(&path);
    *known = dt_run_key_is_own(key);
    if (!*known)
        DT_TRY(dt_run_key_is_metric(store, known, key, err));
    if (*known || strchr(key, '"') != NULL)
        goto out;
    dt_strbuf_add_char(&path, '$');
    for (const char *at = key; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, ".");

        dt_strbuf_add_fmt(&path, ".\"%.*s\"", (int)length, at);
        at += length + (at[length] == '.');
    }
    DT_TRY(DT_SQL_FIRST(&one, known, &dt_sql_one_int, store, NULL, err,
                        "SELECT 1 FROM attempts WHERE json_valid(recipe_json) AND"
                        " json_type(recipe_json, ?1) IS NOT NULL LIMIT 1",
                        DT_TEXT(path.data)));
out:
    dt_strbuf_release(&path);
    return st;
}

/* False for a value that is unknown or not a number: it comes last in both orders. */
static bool counts(const dt_run_value *value)
{
    return value->there && !(value->is_number && isinf(value->number));
}

static int rising_order(const dt_run_value *a, const dt_run_value *b)
{
    if (a->there != b->there)
        return a->there ? -1 : 1;
    if (a->is_number != b->is_number)
        return a->is_number ? -1 : 1;
    if (a->is_number)
        return a->number < b->number ? -1 : a->number > b->number;
    return strcmp(a->text, b->text);
}

int dt_run_value_order(const dt_run_value *a, const dt_run_value *b, bool falling)
{
    int order = rising_order(a, b);

    return falling && counts(a) && counts(b) ? -order : order;
}

enum { KEY_BYTES = 160, KEYS_MOST = 1024 };

typedef struct diff {
    const char **keys;
    size_t count;
    dt_arena *arena;
} diff;

static bool is_left_out(const char *key)
{
    static const char *const keys[] = {"name", "recipe", "needs", "notify"};

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
