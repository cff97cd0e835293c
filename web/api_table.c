/* api_table: serves the values of keys of several runs as a table, and the keys that runs have.
 *
 * The table of a group is one answer: a page that asked each of 300 runs would be slow.
 */
#include <stdlib.h>
#include <string.h>

#include "base/metric_kinds.h"
#include "web/web_int.h"

#define TABLE_RUNS_MOST 1000
#define KEYS_RUNS       100  /* newest runs whose keys are offered */
#define NAMES_MOST      2000 /* metrics that are listed */

typedef struct table {
    const char **ids;
    int64_t ids_count;
    dt_run *runs;
    dt_run_entry *entries;
    int64_t count;
    const char **differing; /* keys in which the recipes differ */
    size_t differing_count;
    const char **columns;
    int64_t columns_count;
    const char *metric,
        *best;    /* by which runs are ranked, and the key of its best value; "": none */
    bool recipes; /* each row has its recipe */
} table;

/* Reads the runs; those that were removed meanwhile are left out. */
static dt_status runs_read(table *t, dt_web_request *request, dt_error *err)
{
    size_t room = (size_t)t->ids_count + 1;
    dt_status st = DT_OK;

    t->runs = dt_arena_alloc_array(request->arena, room, sizeof(t->runs[0]));
    t->entries = dt_arena_alloc_array(request->arena, room, sizeof(t->entries[0]));
    for (int64_t i = 0; i < t->ids_count; i++) {
        dt_error problem = DT_ERROR_INIT;
        dt_run *run = &t->runs[t->count];

        st = dt_store_run_find(request->store, run, t->ids[i], request->arena, &problem);
        if (st == DT_ERR_NOT_FOUND)
            continue;
        if (st != DT_OK)
            DT_THROW(err, st, "%s", problem.message);
        t->entries[t->count++] = (dt_run_entry){.run = run};
    }
    st = DT_OK;
out:
    return st;
}

static json_t *texts_json(const char *const *texts, int64_t count)
{
    json_t *list = json_array();

    for (int64_t i = 0; i < count; i++)
        json_array_append_new(list, dt_web_string_json(texts[i]));
    return list;
}

/* Values of the environment can be long, and secret. */
static void leave_out_environment(table *t)
{
    size_t kept = 0;

    for (size_t i = 0; i < t->differing_count; i++)
        if (strcmp(t->differing[i], "env") != 0 && strncmp(t->differing[i], "env.", 4) != 0)
            t->differing[kept++] = t->differing[i];
    t->differing_count = kept;
}

/* Adds the value of each key to a list. */
static dt_status values_add(json_t *list, table *t, int64_t at, const char *const *keys,
                            int64_t count, dt_web_request *request, dt_error *err)
{
    dt_status st = DT_OK;
    dt_run_value value;

    for (int64_t i = 0; i < count; i++) {
        DT_TRY(dt_run_value_get(&value, request->store, &t->entries[at], keys[i], request->arena,
                                err));
        json_array_append_new(list, dt_web_value_of_run_json(&value));
    }
out:
    return st;
}

static json_t *recipe_of(const dt_run *run)
{
    json_t *recipe;

    if (dt_json_parse(&recipe, run->recipe_json, strlen(run->recipe_json), "recipe", NULL) != DT_OK)
        return json_null();
    return dt_web_value_json(recipe);
}

static dt_status row_add(json_t *rows, table *t, int64_t at, dt_web_request *request, dt_error *err)
{
    json_t *values = json_array(), *keys = json_array(), *best = json_array(), *row = NULL;
    const dt_run *run = &t->runs[at];
    int64_t attempts_count;
    dt_attempt *attempts;
    dt_activity activity;
    dt_status st = DT_OK;

    DT_TRY(dt_activity_read(&activity, request->store, run, request->now_ms, request->arena, err));
    DT_TRY(dt_store_attempt_list(request->store, &attempts, &attempts_count, run->id,
                                 request->arena, err));
    DT_TRY(values_add(keys, t, at, t->differing, (int64_t)t->differing_count, request, err));
    DT_TRY(values_add(values, t, at, t->columns, t->columns_count, request, err));
    DT_TRY(values_add(best, t, at, &t->best, t->best[0] != '\0', request, err));
    row = dt_web_run_json(run, &activity, request->now_ms);
    json_object_set_new(row, "begun_ms",
                        dt_web_time_json(attempts_count > 0 && attempts[0].started_ms != 0
                                             ? attempts[0].started_ms
                                             : run->created_ms));
    json_object_set(row, "keys", keys);
    json_object_set(row, "values", values);
    json_object_set(row, "best", json_array_size(best) > 0 ? json_array_get(best, 0) : json_null());
    if (t->recipes)
        json_object_set_new(row, "recipe", recipe_of(run));
    json_array_append(rows, row);
out:
    json_decref(row);
    json_decref(best);
    json_decref(keys);
    json_decref(values);
    return st;
}

/* Chooses the metric by which the runs are ranked: the one that the request names, that of early_stop, else the validation
 * loss, else the loss; none if no run has it. */
static dt_status judge(table *t, const char *const *names, int64_t names_count,
                       dt_web_request *request, dt_error *err)
{
    const char *given = dt_web_argument(request, "metric");
    const char *wanted[] = {given != NULL ? given : "", "", dt_metric_name(DT_METRIC_VALID_LOSS),
                            dt_metric_name(DT_METRIC_LOSS)};
    dt_status st = DT_OK;
    dt_run_value value;

    t->metric = t->best = "";
    for (int64_t i = 0; i < t->count && wanted[1][0] == '\0'; i++) {
        DT_TRY(dt_run_value_get(&value, request->store, &t->entries[i], "early_stop.metric",
                                request->arena, err));
        wanted[1] = value.text;
    }
    for (size_t w = 0; w < sizeof(wanted) / sizeof(wanted[0]); w++)
        for (int64_t i = 0; i < names_count && t->metric[0] == '\0'; i++)
            if (strcmp(names[i], wanted[w]) == 0)
                t->metric = names[i];
    if (t->metric[0] != '\0')
        t->best = dt_arena_printf(request->arena, "%s%s", t->metric,
                                  dt_metric_more_is_better(t->metric) ? ".max" : ".min");
out:
    return st;
}

dt_status dt_web_table(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    int64_t names_count, left_out, recipes;
    json_t *rows = json_array();
    dt_status st = DT_OK;
    const char **names;
    table t = {0};

    DT_TRY(dt_web_requested_runs(&t.ids, &t.ids_count, request, request->arena, err));
    left_out = t.ids_count > TABLE_RUNS_MOST ? t.ids_count - TABLE_RUNS_MOST : 0;
    t.ids += left_out; /* of a group the newest are kept: the oldest are first */
    t.ids_count -= left_out;
    DT_TRY(dt_web_argument_int(&recipes, request, "recipes", 0, 0, 1, err));
    t.recipes = recipes == 1;
    DT_TRY(dt_web_argument_list(&t.columns, &t.columns_count, request, "columns",
                                DT_WEB_COLUMNS_MAX, request->arena, err));
    DT_TRY(runs_read(&t, request, err));
    dt_recipe_diff(&t.differing, &t.differing_count, t.entries, (size_t)t.count, request->arena);
    leave_out_environment(&t);
    DT_TRY(dt_web_metric_names(&names, &names_count, request->store, t.ids, t.ids_count,
                               request->arena, err));
    DT_TRY(judge(&t, names, names_count, request, err));
    for (int64_t i = 0; i < t.count; i++)
        DT_TRY(row_add(rows, &t, i, request, err));
    names_count = names_count > NAMES_MOST ? NAMES_MOST : names_count;
    st = dt_web_reply_json(reply, 200,
                           json_pack("{sI sI so sb so so so sO}", "time_ms",
                                     (json_int_t)request->now_ms, "left_out", (json_int_t)left_out,
                                     "metric", dt_web_string_json(t.metric), "higher_is_better",
                                     (int)dt_metric_more_is_better(t.metric), "keys",
                                     texts_json(t.differing, (int64_t)t.differing_count), "columns",
                                     texts_json(t.columns, t.columns_count), "metrics",
                                     texts_json(names, names_count), "runs", rows),
                           err);
out:
    for (int64_t i = 0; i < t.count; i++)
        dt_run_entry_release(&t.entries[i]);
    json_decref(rows);
    return st;
}

/* --- the keys that the newest runs have */

static void add_keys(json_t *found, const char *path, json_t *recipe)
{
    const char *key;
    json_t *value;

    json_object_foreach(recipe, key, value) {
        char below[160];

        if (path[0] == '\0' && strcmp(key, "env") == 0)
            continue;
        snprintf(below, sizeof(below), "%s%s%s", path, path[0] != '\0' ? "." : "", key);
        if (json_is_object(value))
            add_keys(found, below, value);
        else
            json_object_set_new(found, below, json_true());
    }
}

static json_t *keys_of(const json_t *found)
{
    json_t *list = json_array(), *value;
    const char *key;

    json_object_foreach((json_t *)found, key, value)
        json_array_append_new(list, dt_web_string_json(key));
    return list;
}

/* Answers whether a filter or a key of a column can be used: "problem" is null, or says what is wrong. */
static dt_status check(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    const char *filter = dt_web_argument(request, "filter");
    const char *key = dt_web_argument(request, "column");
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_run_filter parsed;
    bool known = true;

    if (filter != NULL)
        st = dt_run_filter_parse(&parsed, filter, request->arena, &problem);
    if (st == DT_OK)
        st = dt_run_key_refuse_unknown(request->store, filter != NULL ? parsed.key : key, &problem);
    known = st == DT_OK;
    if (!known && st != DT_ERR_USAGE)
        return DT_FAIL(err, st, "%s", problem.message);
    return dt_web_reply_json(
        reply, 200,
        json_pack("{so}", "problem", known ? json_null() : dt_web_string_json(problem.message)),
        err);
}

dt_status dt_web_keys(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    json_t *recipe_keys = json_object(), *recipe;
    dt_run_search newest = {.state = -1, .archived = true, .limit = KEYS_RUNS};
    int64_t count, total, names_count;
    const char **ids, **names;
    dt_status st = DT_OK;
    dt_run run;

    if (dt_web_argument(request, "filter") != NULL || dt_web_argument(request, "column") != NULL) {
        json_decref(recipe_keys);
        return check(request, reply, err);
    }
    DT_TRY(dt_store_run_search(request->store, &ids, &count, &total, &newest, request->arena, err));
    for (int64_t i = 0; i < count; i++) {
        dt_error problem = DT_ERROR_INIT;

        if (dt_store_run_find(request->store, &run, ids[i], request->arena, &problem) != DT_OK ||
            dt_json_parse(&recipe, run.recipe_json, strlen(run.recipe_json), "recipe", NULL) !=
                DT_OK)
            continue; /* removed meanwhile, or damaged: it has no keys to offer */
        add_keys(recipe_keys, "", recipe);
        json_decref(recipe);
    }
    DT_TRY(
        dt_web_metric_names(&names, &names_count, request->store, ids, count, request->arena, err));
    names_count = names_count > NAMES_MOST ? NAMES_MOST : names_count;
    st = dt_web_reply_json(reply, 200,
                           json_pack("{so so}", "recipe", keys_of(recipe_keys), "metrics",
                                     texts_json(names, names_count)),
                           err);
out:
    json_decref(recipe_keys);
    return st;
}
