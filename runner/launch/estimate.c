/* estimate: predicts data, memory, communication, arithmetic and time of a run, the time from the speed of
 * finished runs where there are some. */
#include "runner/launch/estimate.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/metric_kinds.h"
#include "base/names.h"
#include "base/resources.h"
#include "engine/data/stream.h"
#include "recipes/architecture/architecture.h"
#include "recipes/cost/matrices.h"
#include "recipes/cost/traffic.h"
#include "recipes/fields/fields.h"
#include "recipes/plan/plan.h"
#include "runner/predict/predict.h"
#include "store/curve.h"
#include "store/event.h"
#include "store/run.h"
#include "store/store.h"

/* past_speed: finds the speed of finished runs on the same devices, to predict that of a new run.
 *
 * Same     same name of the first node, ranks on processors or on GPUs alike, and same precision
 * Rate     FLOPs of the model per second over the whole run, per GPU or per thread of a processor
 * Band     lowest and highest rate of the newest runs whose step has a quarter to four times as many FLOPs, widened
 *          by a tenth, or by a quarter if there are fewer than three; if there are none, of the runs nearest in
 *          size, half as fast to twice as fast
 */

typedef struct dt_past_speed {
    int64_t runs;     /* 0: none */
    bool like;        /* runs of about this size */
    double low, high; /* FLOPs per second of a GPU or of a thread */
} dt_past_speed;

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
    return strcmp(device, DT_DEVICE_CPU) == 0;
}

/* Returns the GPUs, or processor threads, that compute in the plan. */
static double past_speed_devices(const dt_plan *plan)
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

static double last_of(finder *f, const dt_run *run, dt_metric_id metric)
{
    dt_metric_end end = {0};

    if (dt_store_metric_end(f->store, &end, run->id, dt_metric_name(metric), DT_METRIC_LAST,
                            NULL) != DT_OK ||
        !end.there)
        return NAN;
    return end.value;
}

static dt_status look_at(finder *f, const dt_run *run, dt_error *err)
{
    double flops = last_of(f, run, DT_METRIC_FLOPS_PER_SECOND);
    double step_flops = flops * last_of(f, run, DT_METRIC_STEP_SECONDS), speed;
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
    flops *= speed / last_of(f, run, DT_METRIC_TOKENS_PER_SECOND); /* average over the whole run */
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

/* Finds past runs; none if the store cannot be read. Does not create a store. */
static void past_speed_find(dt_past_speed *out, const dt_plan *plan, double step_flops,
                            dt_arena *arena)
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

/* Share of the data sheet's rate that published trainings of transformers reach
 * (docs/scaling.md). */
#define GPU_SHARE_LOW  0.25
#define GPU_SHARE_HIGH 0.55
/* A small step takes at most the time in which the host submits its operations; operations per
 * block, forward and backward. */
#define OP_SECONDS 5e-6
#define BLOCK_OPS  40
/* Share of a processor's peak: from small models, whose ops are memory-bound, to wide ones. */
#define PROCESSOR_SHARE_LOW  0.03
#define PROCESSOR_SHARE_HIGH 0.5
#define PROCESSOR_HZ         2.5e9 /* assumed clock rate of a core */

enum { GPUS_USUAL = 8, GPUS_MOST = 16 };

/* --- messages */

/* Counts the bytes sent per step. Every micro-step after the second sends the same as the one
 * before. */
static dt_status count_sent(dt_run_estimate *out, dt_arena *arena, dt_error *err)
{
    enum { COUNTED = 3 };
    const dt_plan *plan = &out->flight->plan;
    int64_t steps = plan->recipe.batch.accumulate, vocab = out->flight->data.vocab;
    int64_t node_ranks = dt_plan_memory_ranks(plan, 0).node_ranks;
    double sent[2], across[2], sums[2], more;
    dt_traffic traffic;
    dt_status st = DT_OK;

    if (plan->world_size == 1)
        return DT_OK;
    for (int i = 0; i < 2; i++) {
        int64_t counted = steps < COUNTED ? steps : COUNTED - 1 + i;

        DT_TRY(dt_traffic_make(&traffic, &plan->recipe, vocab, plan->world_size, node_ranks,
                               counted, arena, err));
        sent[i] = dt_traffic_sent_bytes(&traffic);
        across[i] = dt_traffic_across_bytes(&traffic, &sums[i]);
    }
    more = steps > COUNTED ? (double)(steps - COUNTED) : 0;
    out->sent_bytes = sent[1] + (sent[1] - sent[0]) * more;
    out->across_bytes = across[1] + (across[1] - across[0]) * more;
    out->across_sums_bytes = sums[1] + (sums[1] - sums[0]) * more;
out:
    return st;
}

/* --- time */

static void span(dt_run_estimate *out, double flops_low, double flops_high)
{
    double all = (double)dt_preflight_steps(out->flight, NULL) * (out->flops + out->matrix_flops);

    if (all <= 0)
        return;
    out->seconds_low = all / flops_high;
    out->seconds_high = all / flops_low;
}

/* Estimates a step on the plan's GPUs; each node is assumed to have as many as the fullest. */
static dt_status time_of_gpus(dt_run_estimate *out, dt_arena *arena, dt_error *err)
{
    const dt_plan *plan = &out->flight->plan;
    const dt_recipe *recipe = &plan->recipe;
    bool dp = recipe->strategy.kind == DT_STRATEGY_DP,
         half = recipe->precision.kind != DT_PRECISION_FP32;
    double tflops = half ? out->gpu->half_tflops : out->gpu->single_tflops;
    int64_t steps = dt_preflight_steps(out->flight, NULL), vocab = out->flight->data.vocab;
    const double shares[] = {GPU_SHARE_HIGH, GPU_SHARE_LOW};
    double *const seconds[] = {&out->seconds_low, &out->seconds_high};
    dt_machine machine = {
        .fabric = {.nodes = dp ? 1 : plan->node_count,
                   .node_gpus = dp ? 1 : out->flight->ranks_on_node,
                   .nvlink = out->gpu->nvlink,
                   .node_gbs = out->gpu->node_gbs},
        .tflops = tflops,
        .matrix_tflops =
            recipe->precision.kind == DT_PRECISION_BF16 ? tflops : out->gpu->single_tflops,
        .memory_gbs = out->gpu->memory_gbs,
        .memory_bytes = out->gpu->memory_gb * 1e9,
    };
    double asking =
        OP_SECONDS * BLOCK_OPS * (double)((recipe->model.layers + 2) * recipe->batch.accumulate);
    dt_prediction prediction;
    dt_status st = DT_OK;

    machine.fabric.network_gbs = dt_networks[0].nic_gbs * (double)machine.fabric.node_gpus;
    for (int i = 0; i < 2; i++) {
        machine.efficiency = shares[i];
        DT_TRY(dt_predict(&prediction, recipe, vocab, &machine, arena, err));
        if (steps > 0)
            *seconds[i] = prediction.step_seconds * (double)steps;
    }
    out->seconds_high = fmax(out->seconds_high, asking * (double)steps);
    out->basis = dt_arena_printf(arena, "%s: %.4g TFLOP/s of its data sheet, %.0f to %.0f %% of it",
                                 out->gpu->name, tflops, 100 * GPU_SHARE_LOW, 100 * GPU_SHARE_HIGH);
out:
    return st;
}

/* Returns the FLOPs per cycle of a core: two fused multiply-adds on a register of floats, if
 * supported. */
static double processor_flops(const char **name)
{
    *name = "any";
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        *name = "AVX-512";
        return 64 * PROCESSOR_HZ;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        *name = "AVX2";
        return 32 * PROCESSOR_HZ;
    }
#endif
    return 8 * PROCESSOR_HZ;
}

static void time_of_processors(dt_run_estimate *out, dt_arena *arena)
{
    const char *name;
    double peak = processor_flops(&name) * past_speed_devices(&out->flight->plan);

    span(out, peak * PROCESSOR_SHARE_LOW, peak * PROCESSOR_SHARE_HIGH);
    out->basis = dt_arena_printf(
        arena, "rough estimate, better after a first run: %s, %.0f to %.0f %% of %.3g TFLOP/s",
        name, 100 * PROCESSOR_SHARE_LOW, 100 * PROCESSOR_SHARE_HIGH, peak / 1e12);
}

static dt_status estimate(dt_run_estimate *out, dt_arena *arena, dt_error *err)
{
    const dt_plan *plan = &out->flight->plan;
    dt_past_speed past;
    double devices = past_speed_devices(plan);

    if (out->gpu != NULL && !isnan(out->sent_bytes))
        return time_of_gpus(out, arena, err);
    out->basis = "the traffic of a step cannot be estimated";
    if (out->gpu != NULL)
        return DT_OK;
    past_speed_find(&past, plan, out->flops, arena);
    if (past.runs > 0) {
        span(out, past.low * devices, past.high * devices);
        out->basis = dt_arena_printf(arena, "%lld finished run%s here of %s", (long long)past.runs,
                                     past.runs == 1 ? "" : "s",
                                     past.like ? "about this size" : "another size");
    } else if (on_processors(plan->ranks[0].device)) {
        time_of_processors(out, arena);
    } else {
        out->basis =
            "no finished run on these GPUs yet; --gpus-as h100 uses the rate of a data sheet";
    }
    return DT_OK;
}

/* --- */

static double epochs_of(const dt_preflight *flight)
{
    double tokens = (double)flight->data.train_tokens;
    int64_t steps = dt_preflight_steps(flight, NULL);

    if (flight->plan.recipe.schedule.epochs > 0 && flight->plan.recipe.schedule.steps == 0)
        return (double)flight->plan.recipe.schedule.epochs;
    if (flight->plan.recipe.data.mixture.count > 0)
        tokens = (double)(dt_preflight_mixture_samples(flight) * flight->plan.recipe.batch.tokens);
    else if (dt_packs_fixed(&flight->plan.recipe)) /* packed sequences contain padding */
        tokens = (double)(flight->data.train_packs * flight->plan.recipe.batch.tokens);
    return tokens > 0 && steps > 0 ? (double)flight->tokens_per_step * (double)steps / tokens : NAN;
}

dt_status dt_run_estimate_make(dt_run_estimate *out, const dt_preflight *flight,
                               const dt_gpu_spec *gpu, dt_arena *arena, dt_error *err)
{
    const dt_recipe *recipe = &flight->plan.recipe;
    dt_model_config config;
    dt_matrices matrices;

    *out = (dt_run_estimate){.flight = flight, .gpu = gpu, .seconds_low = NAN, .seconds_high = NAN};
    dt_model_config_make(&config, recipe, flight->data.vocab);
    dt_matrices_count(&matrices, recipe);
    out->flops = dt_model_flops_per_token(&config) * (double)flight->tokens_per_step;
    out->matrix_flops = matrices.flops;
    out->epochs = epochs_of(flight);
    if (count_sent(out, arena, NULL) != DT_OK)
        out->sent_bytes = NAN;
    return estimate(out, arena, err);
}

/* Parses the name of a GPU (runner/predict/predict.h) and the number per node. DT_ERR_USAGE. */
static dt_status fit_parse_gpus(const dt_gpu_spec **out, int64_t *count, const char *text,
                                dt_error *err)
{
    size_t length = strcspn(text, ":");
    char *end = NULL;

    *count = text[length] == ':' ? strtoll(text + length + 1, &end, 10) : GPUS_USUAL;
    if (*count < 1 || *count > GPUS_MOST ||
        (end != NULL && (*end != '\0' || end == text + length + 1)))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--gpus-as is '%s': expected 1 to %d GPUs per node after the colon", text,
                       GPUS_MOST);
    for (int i = 0; dt_gpu_spec_names[i] != NULL; i++)
        if (strncmp(dt_gpu_spec_names[i], text, length) == 0 &&
            dt_gpu_spec_names[i][length] == '\0') {
            *out = &dt_gpu_specs[i];
            return DT_OK;
        }
    return DT_FAIL(
        err, DT_ERR_USAGE,
        "--gpus-as is '%s': expected one of h100, h200, a100, a100-40gb, l40s and rtx4090", text);
}

dt_status dt_run_estimate_preflight(dt_preflight *out, const dt_gpu_spec **gpu,
                                    const dt_recipe *recipe, const dt_recipe_source *source,
                                    const char *gpus_as, dt_arena *arena, dt_error *err)
{
    int64_t count;
    dt_status st = DT_OK;

    DT_TRY(fit_parse_gpus(gpu, &count, gpus_as, err));
    DT_TRY(dt_preflight_with_gpus(out, recipe, source, count, arena, err));
    out->available_bytes = (int64_t)((*gpu)->memory_gb * 1e9);
out:
    return st;
}

dt_status dt_run_estimate_check_gpu(const dt_preflight *flight, const dt_gpu_spec *gpu,
                                    dt_error *err)
{
    dt_memory_ranks ranks = dt_plan_memory_ranks(&flight->plan, 0);

    return dt_memory_check(&flight->plan.recipe, flight->data.vocab, &ranks, 1,
                           flight->available_bytes, gpu->name, err);
}
