#include "runner/view/compare/comparison.h"

#include <math.h>
#include <string.h>

#include "runner/cli/report.h"
#include "runner/view/runs/recipe_diff.h"
#include "runner/view/runs/runs.h"

enum { METRICS_MOST = 256 };

static dt_status add_metric(dt_comparison *io, const char *name, dt_error *err)
{
    for (size_t i = 0; i < io->metrics_count; i++)
        if (strcmp(io->metrics[i], name) == 0)
            return DT_OK;
    if (io->metrics_count == METRICS_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "more than %d metrics", METRICS_MOST);
    io->metrics[io->metrics_count++] = name;
    return DT_OK;
}

/* Collects the metrics that are asked for, or else all metrics of all runs. */
static dt_status find_metrics(dt_comparison *io, const char *const *asked, size_t asked_count,
                              dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    const char **names;
    int64_t count;

    io->metrics = dt_arena_alloc_array(arena, METRICS_MOST, sizeof(io->metrics[0]));
    for (size_t i = 0; i < asked_count; i++)
        DT_TRY(add_metric(io, asked[i], err));
    for (size_t r = 0; r < io->count && asked_count == 0; r++) {
        DT_TRY(dt_store_metric_names(io->store, &names, &count, io->runs[r].run->id, arena, err));
        for (int64_t i = 0; i < count; i++)
            DT_TRY(add_metric(io, names[i], err));
    }
out:
    return st;
}

/* Finds the first and last step of a metric over all runs. DT_ERR_USAGE if no run has it. */
static dt_status find_extent(dt_comparison *io, size_t metric, dt_arena *arena, dt_error *err)
{
    int64_t first, last;
    dt_status st = DT_OK;
    bool there, any = false;

    for (size_t r = 0; r < io->count; r++) {
        DT_TRY(dt_curve_extent(&there, &first, &last, io->store, io->runs[r].run->id,
                               io->metrics[metric], arena, err));
        if (!there)
            continue;
        io->first_step[metric] =
            any && io->first_step[metric] < first ? io->first_step[metric] : first;
        io->last_step[metric] = any && io->last_step[metric] > last ? io->last_step[metric] : last;
        any = true;
    }
    if (!any)
        DT_THROW(err, DT_ERR_USAGE, "none of these runs has a metric '%s'", io->metrics[metric]);
out:
    return st;
}

dt_status dt_comparison_make(dt_comparison *io, const char *const *metrics, size_t metrics_count,
                             size_t buckets, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    dt_recipe_diff(&io->keys, &io->keys_count, io->runs, io->count, arena);
    DT_TRY(find_metrics(io, metrics, metrics_count, arena, err));
    io->curves =
        dt_arena_alloc_array(arena, io->metrics_count * io->count + 1, sizeof(io->curves[0]));
    io->first_step = dt_arena_alloc_array(arena, io->metrics_count + 1, sizeof(io->first_step[0]));
    io->last_step = dt_arena_alloc_array(arena, io->metrics_count + 1, sizeof(io->last_step[0]));
    for (size_t m = 0; m < io->metrics_count; m++) {
        DT_TRY(find_extent(io, m, arena, err));
        for (size_t r = 0; r < io->count; r++)
            DT_TRY(dt_curve_read(&io->curves[m * io->count + r], io->store, io->runs[r].run->id,
                                 io->metrics[m], io->first_step[m], io->last_step[m], buckets,
                                 arena, err));
    }
out:
    return st;
}

/* --- for programs */

static json_t *point_to_json(const dt_curve_point *point, const dt_curve_point *first)
{
    if (point->step < 0)
        return json_null();
    return json_pack("{s:o, s:I, s:o}", "value", dt_json_number(point->value), "step",
                     (json_int_t)point->step, "difference",
                     dt_json_number(point->value - first->value));
}

static json_t *metrics_to_json(const dt_comparison *all, size_t run)
{
    json_t *object = json_object();

    for (size_t m = 0; m < all->metrics_count; m++) {
        const dt_curve *first = &all->curves[m * all->count], *curve = first + run;
        const char *name = all->metrics[m];

        if (curve->count > 0)
            json_object_set_new(
                object, name,
                json_pack("{s:I, s:o, s:o}", "points", (json_int_t)curve->count, "best",
                          point_to_json(dt_curve_best(curve, name), dt_curve_best(first, name)),
                          "last", point_to_json(&curve->last, &first->last)));
    }
    return object;
}

json_t *dt_comparison_to_json(dt_comparison *all, dt_arena *arena)
{
    json_t *object = dt_report_object(), *runs = json_array(), *keys = json_array();

    for (size_t k = 0; k < all->keys_count; k++)
        json_array_append_new(keys, json_string(all->keys[k]));
    for (size_t r = 0; r < all->count; r++) {
        json_t *run = dt_runs_to_json(all->runs[r].run), *recipe = json_object();

        json_object_del(run, "version");
        for (size_t k = 0; k < all->keys_count; k++) {
            dt_run_value value = {.text = ""};

            (void)dt_run_value_get(&value, all->store, &all->runs[r], all->keys[k], arena, NULL);
            json_object_set_new(recipe, all->keys[k],
                                !value.there      ? json_null()
                                : value.is_number ? dt_json_number(value.number)
                                                  : dt_json_text(value.text));
        }
        json_object_set_new(run, "recipe", recipe);
        json_object_set_new(run, "metrics", metrics_to_json(all, r));
        json_array_append_new(runs, run);
    }
    json_object_set_new(object, "differ", keys);
    json_object_set_new(object, "runs", runs);
    return object;
}
