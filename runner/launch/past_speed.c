#include "runner/launch/past_speed.h"

#include <math.h>
#include <string.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/resources.h"
#include "recipes/fields/fields.h"
#include "store/store.h"

enum { LOOKED_AT = 100, TAKEN_MOST = 20, SURE = 3 };

#define NEAR_SIZE 1.3863 /* log 4: up to four times as many or as few FLOPs per step */

typedef struct finder {
    dt_store *store;
    const dt_plan *plan;
    double step_flops;
    dt_arena *arena;
    int64_t count;
    struct {
        double rate, size; /* size: log of its FLOPs per step over this run's */
    } found[LOOKED_AT];    /* newest first */
} finder;

static bool on_processors(const char *device)
{
    return strncmp(device, "cpu", 3) == 0;
}

double dt_past_speed_devices(const dt_plan *plan)
{
    double count = 0;

    for (int64_t i = 0; i < plan->world_size; i++) {
        const dt_plan_rank *rank = &plan->ranks[i];

        count += (double)(rank->replicas * (on_processors(rank->device) ? rank->threads : 1));
    }
    return count;
}

/* Returns the devices of a past run: its ranks, and for dp the replicas of the recipe. */
static double devices_of(const dt_recipe *recipe, int64_t ranks, int64_t nodes, bool processors)
{
    int64_t cores = dt_resources_cores() * nodes;
    int64_t replicas = recipe->strategy.kind == DT_STRATEGY_DP ? recipe->ranks * nodes : ranks;

    if (!processors)
        return (double)ranks;
    return (double)(recipe->threads > 0 ? recipe->threads * replicas : cores);
}

static bool is_same_place(const finder *f, const dt_node *nodes, int64_t nodes_count,
                          const dt_rank *ranks, int64_t ranks_count)
{
    return nodes_count > 0 && ranks_count > 0 &&
           strcmp(nodes[0].name, f->plan->node_names[0]) == 0 &&
           on_processors(ranks[0].device) == on_processors(f->plan->ranks[0].device);
}

static double last_of(finder *f, const dt_run *run, const char *name)
{
    dt_metric_end end = {0};

    if (dt_store_metric_end(f->store, &end, run->id, name, DT_METRIC_LAST, NULL) != DT_OK ||
        !end.there)
        return NAN;
    return end.value;
}

static dt_status look_at(finder *f, const dt_run *run, dt_error *err)
{
    double flops = last_of(f, run, "flops_per_second");
    double step_flops = flops * last_of(f, run, "step_seconds"), speed;
    int64_t nodes_count, ranks_count;
    dt_node *nodes;
    dt_rank *ranks;
    json_t *json = NULL;
    dt_recipe recipe;
    dt_status st = DT_OK;

    DT_TRY(
        dt_store_node_list(f->store, &nodes, &nodes_count, run->id, run->attempt, f->arena, err));
    DT_TRY(
        dt_store_rank_list(f->store, &ranks, &ranks_count, run->id, run->attempt, f->arena, err));
    if (!is_same_place(f, nodes, nodes_count, ranks, ranks_count) || !(step_flops > 0))
        goto out;
    DT_TRY(dt_json_parse(&json, run->recipe_json, strlen(run->recipe_json), run->id, err));
    DT_TRY(dt_recipe_from_json(&recipe, json, f->arena, err));
    if (recipe.precision.kind != f->plan->recipe.precision.kind)
        goto out;
    DT_TRY(dt_store_run_mean_speed(f->store, &speed, run, f->arena, err));
    flops *= speed / last_of(f, run, "tokens_per_second"); /* average over the whole run */
    flops /= devices_of(&recipe, ranks_count, nodes_count, on_processors(ranks[0].device));
    if (!(flops > 0))
        goto out;
    f->found[f->count].rate = flops;
    f->found[f->count++].size = log(step_flops / f->step_flops);
out:
    json_decref(json);
    return st;
}

/* Takes the newest runs whose size is close to that of the nearest. */
static void take_nearest(dt_past_speed *out, const finder *f)
{
    double nearest = INFINITY, by;

    for (int64_t i = 0; i < f->count; i++)
        nearest = fmin(nearest, fabs(f->found[i].size));
    out->like = nearest <= NEAR_SIZE;
    for (int64_t i = 0; i < f->count && out->runs < TAKEN_MOST; i++) {
        double rate = f->found[i].rate;

        if (fabs(f->found[i].size) > (out->like ? NEAR_SIZE : nearest + NEAR_SIZE))
            continue;
        out->low = out->runs > 0 ? fmin(out->low, rate) : rate;
        out->high = out->runs > 0 ? fmax(out->high, rate) : rate;
        out->runs++;
    }
    by = !out->like ? 2 : out->runs < SURE ? 1.25 : 1.1;
    out->low /= by;
    out->high *= by;
}

static bool has_store(dt_arena *arena)
{
    const char *folder, *path;

    if (dt_dir_path(&folder, DT_DIR_STATE, arena, NULL) != DT_OK)
        return false;
    path = dt_arena_printf(arena, "%s/store.db", folder);
    return dt_file_exists(path);
}

void dt_past_speed_find(dt_past_speed *out, const dt_plan *plan, double step_flops, dt_arena *arena)
{
    finder f = {.plan = plan, .step_flops = step_flops, .arena = arena};
    int64_t count = 0;
    dt_run *runs;

    *out = (dt_past_speed){0};
    if (!has_store(arena) || dt_store_open_to_read(&f.store, NULL, NULL) != DT_OK)
        return;
    if (dt_store_run_list(f.store, &runs, &count, DT_RUN_FINISHED, LOOKED_AT, arena, NULL) != DT_OK)
        count = 0;
    for (int64_t i = 0; i < count; i++)
        (void)look_at(&f, &runs[i], NULL); /* skip runs that cannot be read */
    dt_store_close(f.store);
    if (f.count > 0)
        take_nearest(out, &f);
}
