/* predict: predicts the time of a step, with the table of GPUs and networks and a model of NCCL's
 * collectives. */
#include "runner/predict/predict.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "recipes/architecture/architecture.h"
#include "recipes/cost/matrices.h"
#include "recipes/plan/plan.h"

#define H100_LINKS "NCCL on NVLink 4: 360 to 370 GB/s (its developers, nccl-tests issues 212, 326)"
#define A100_LINKS "NCCL on NVLink 3: its own model's bound of 235 GB/s (src/graph/tuning.cc)"
#define PCIE_LINKS "NCCL through PCIe 4 and the host: 20 GB/s (nccl-tests issue 178)"

const dt_gpu_spec dt_gpu_specs[] = {
    {"h100", 989.4, 66.9, 80, 3350, true, 360, H100_LINKS},
    {"h200", 989.4, 66.9, 141, 4800, true, 360, H100_LINKS},
    {"a100", 312, 19.5, 80, 2039, true, 235, A100_LINKS},
    {"a100-40gb", 312, 19.5, 40, 1555, true, 235, A100_LINKS},
    {"l40s", 362, 91.6, 48, 864, false, 20, PCIE_LINKS},
    {"rtx4090", 165.2, 82.6, 24, 1008, false, 20, PCIE_LINKS},
};
const char *const dt_gpu_spec_names[] = {"h100", "h200",    "a100", "a100-40gb",
                                         "l40s", "rtx4090", NULL};

const dt_network dt_networks[] = {
    {"ndr", 47, true, "InfiniBand NDR: 46 to 48 GB/s a card (nccl-tests issue 290)"},
    {"hdr", 24, true, "InfiniBand HDR: 96 GB/s over four cards (nccl-tests issue 119)"},
    {"eth100", 11, false, "100 Gb/s Ethernet: line rate less 12 %, assumed"},
    {"eth25", 2.75, false, "25 Gb/s Ethernet: line rate less 12 %, assumed"},
    {"eth10", 1.1, false, "10 Gb/s Ethernet: line rate less 12 %, assumed"},
};
const char *const dt_network_names[] = {"ndr", "hdr", "eth100", "eth25", "eth10", NULL};

enum { LL, LL128, SIMPLE, PROTOCOLS };
enum { RING, TREE, WAYS };
enum { NVLINK, PCIE, NETWORK, LINKS };

/* Microseconds of each start, and of each step. */
static const double start_us[WAYS][PROTOCOLS] = {[RING] = {3.6, 10.0, 8.4}, [TREE] = {4.4, 4.4, 0}};
static const double step_us[LINKS][WAYS][PROTOCOLS] = {
    [NVLINK] = {[RING] = {0.47, 1.9, 3.4}, [TREE] = {0.52, 1.2, 28}},
    [PCIE] = {[RING] = {1.0, 2.5, 5.7}, [TREE] = {1.0, 1.9, 28}},
    [NETWORK] = {[RING] = {2.7, 4.0, 9.6}, [TREE] = {5.0, 8.5, 50}},
};

double dt_fabric_bus_gbs(const dt_fabric *fabric)
{
    if (fabric->nodes == 1)
        return fabric->node_gbs;
    if (fabric->node_gpus == 1)
        return fabric->network_gbs;
    return fmin(fabric->node_gbs, fabric->network_gbs);
}

/* Returns the share of the bus bandwidth that the protocol leaves for data: LL sends a flag with
 * every 4 bytes and keeps fewer bytes in flight, LL128 sends one with every 120 bytes. */
static double usable(const dt_fabric *fabric, dt_traffic_kind kind, int way, int protocol)
{
    bool many = fabric->nodes > 1;

    if (way == RING) {
        const double share[PROTOCOLS] = {many || kind == DT_TRAFFIC_ALL_REDUCE ? 1.0 / 4 : 1.0 / 3,
                                         fabric->node_gpus < 2 ? 0.7 : 0.92, 1};
        return share[protocol];
    } else {
        const double share[PROTOCOLS] = {1 / 3.8, many ? 0.915 : 7.0 / 9, 1};
        return 0.9 * share[protocol];
    }
}

static double latency_us(const dt_fabric *fabric, dt_traffic_kind kind, int way, int protocol)
{
    int link = fabric->nvlink ? NVLINK : PCIE;
    double inside_us = step_us[link][way][protocol], between_us = step_us[NETWORK][way][protocol];
    double nodes = (double)fabric->nodes, gpus = (double)fabric->node_gpus;
    double both = kind == DT_TRAFFIC_ALL_REDUCE ? 2 : 1, between, inside;

    if (fabric->nodes > 1 && protocol == LL)
        inside_us *= 1.8;
    between = way == RING ? both * (nodes - 1) : 2 * floor(log2(nodes));
    inside = way == RING ? both * (nodes * gpus - 1) - between : 2 * (gpus - 1);
    return start_us[way][protocol] + inside * inside_us + between * between_us;
}

double dt_collective_seconds(const dt_fabric *fabric, dt_traffic_kind kind, int64_t bytes)
{
    double world = (double)(fabric->nodes * fabric->node_gpus), best = INFINITY;

    if (world < 2)
        return 0;
    for (int way = 0; way < (kind == DT_TRAFFIC_ALL_REDUCE ? WAYS : TREE); way++) {
        double moved = way == TREE ? 2 : kind == DT_TRAFFIC_BROADCAST ? 1 : (world - 1) / world;

        if (way == RING && kind == DT_TRAFFIC_ALL_REDUCE)
            moved *= 2;
        for (int protocol = 0; protocol < PROTOCOLS; protocol++) {
            double gbs = dt_fabric_bus_gbs(fabric) * usable(fabric, kind, way, protocol);
            double seconds = latency_us(fabric, kind, way, protocol) * 1e-6 +
                             moved * (double)bytes / (gbs * 1e9);

            if (protocol == LL128 && !fabric->nvlink)
                continue; /* NCCL uses LL128 over NVLink only, which keeps 128 bytes together */
            best = fmin(best, seconds);
        }
    }
    return best;
}

/* --- compute */

/* Computes the FLOPs of each stage of a micro-step (recipes/cost/traffic.h). */
static dt_status stage_flops(double **out, const dt_recipe *recipe, int64_t vocab, int64_t blocks,
                             dt_arena *arena, dt_error *err)
{
    /* tensor ranks divide the work of a token */
    double rows = (double)recipe->batch.sequences * (double)recipe->batch.tokens /
                  (double)(recipe->tensor.size > 1 ? recipe->tensor.size : 1);
    double *flops = dt_arena_alloc_array(arena, (size_t)(2 * blocks + 3), sizeof(*flops));
    const dt_architecture *architecture;
    dt_model_config config;

    dt_model_config_make(&config, recipe, vocab);
    architecture = dt_architecture_find(config.kind);
    for (int64_t unit = 0; unit <= blocks; unit++) {
        dt_unit_flops one = architecture->flops(&config, (int)unit);

        if (unit == 0) {
            flops[blocks + 1] = rows * (one.forward + one.backward);
        } else { /* the activations of the last block are still in memory: it is not recomputed */
            flops[unit] = rows * one.forward;
            flops[2 * blocks + 2 - unit] = rows * (one.backward + (unit < blocks ? one.again : 0));
        }
    }
    *out = flops;
    return DT_OK;
}

/* Returns the time in which this rank updates its elements, limited by the memory bandwidth. */
static double update_seconds(const dt_recipe *recipe, const dt_memory *memory,
                             const dt_machine *machine)
{
    int64_t gpus = machine->fabric.nodes * machine->fabric.node_gpus;
    double ways = (double)dt_recipe_shard_ranks(recipe, gpus, machine->fabric.node_gpus);
    double elems = (double)memory->held_count / ways;
    double moments = dt_memory_states(recipe, memory->trained_count);
    double bytes = 12 + 8 * (1 + moments) + (recipe->precision.kind != DT_PRECISION_FP32 ? 2 : 0);

    return elems * bytes / (machine->memory_gbs * 1e9 * DT_PLAN_MEMORY_SHARE);
}

/* --- communication that overlaps with compute */

typedef struct timeline {
    double passes, end; /* passes: compute; end: when compute and all messages are done */
    dt_prediction_messages messages[DT_TRAFFIC_KINDS];
} timeline;

/* Returns the links of a group, which shares the network with the groups that send at the same time. */
static dt_fabric fabric_of(const dt_fabric *all, const dt_traffic_group *group)
{
    dt_fabric out = *all;

    out.nodes = group->nodes;
    out.node_gpus = (group->ranks + group->nodes - 1) / group->nodes;
    out.network_gbs = all->network_gbs / (double)group->at_once;
    return out;
}

/* Adds a message's statistics, and returns its time. */
static double add_message(timeline *out, const dt_fabric *all, const dt_traffic_group *group,
                          dt_traffic_kind kind, int64_t bytes)
{
    dt_fabric fabric = fabric_of(all, group);
    double seconds = dt_collective_seconds(&fabric, kind, bytes);
    dt_prediction_messages *sum = &out->messages[kind];

    sum->count++;
    sum->bytes += (double)bytes;
    sum->across_bytes += dt_traffic_across(kind, group, bytes);
    sum->largest_bytes = fmax(sum->largest_bytes, (double)bytes);
    sum->seconds += seconds;
    return seconds;
}

/* Returns the time of a stage's sums within layers, for which compute waits. */
static double sum_layers(timeline *out, const dt_traffic *traffic, const dt_fabric *all,
                         int64_t stage)
{
    int64_t sums = dt_traffic_sums(traffic, stage);
    double seconds = 0;

    for (int64_t i = 0; i < sums; i++)
        seconds += add_message(out, all, &traffic->groups[DT_TRAFFIC_TENSOR], DT_TRAFFIC_ALL_REDUCE,
                               traffic->sum_bytes);
    return seconds;
}

static dt_status run(timeline *out, const dt_recipe *recipe, int64_t vocab, int64_t micro_steps,
                     const dt_machine *machine, dt_arena *arena, dt_error *err)
{
    int64_t world = machine->fabric.nodes * machine->fabric.node_gpus, at = 0;
    double rate = machine->tflops * 1e12 * machine->efficiency;
    double now = 0, channel_free[DT_TRAFFIC_PEERS] = {0}, *wait, *flops = NULL;
    dt_traffic traffic;
    dt_status st = DT_OK;

    *out = (timeline){0};
    DT_TRY(dt_traffic_make(&traffic, recipe, vocab, world, machine->fabric.node_gpus, micro_steps,
                           arena, err));
    DT_TRY(stage_flops(&flops, recipe, vocab, traffic.blocks, arena, err));
    wait = dt_arena_alloc_array(arena, (size_t)traffic.stages + 1, sizeof(*wait));
    for (int64_t stage = 0; stage <= traffic.stages; stage++) {
        for (; at < traffic.count && traffic.messages[at].launched <= stage; at++) {
            const dt_traffic_message *message = &traffic.messages[at];
            double *busy = &channel_free[message->peers];

            /* what replicas sum has been waited for */
            if (message->peers == DT_TRAFFIC_REPLICAS)
                *busy = fmax(*busy, wait[stage]);
            *busy = fmax(*busy, now) + add_message(out, &machine->fabric,
                                                   &traffic.groups[message->peers], message->kind,
                                                   message->bytes);
            wait[message->needed] = fmax(wait[message->needed], *busy);
        }
        now = fmax(now, wait[stage]);
        if (stage < traffic.stages) {
            double seconds = flops[stage % (2 * traffic.blocks + 3)] / rate;

            out->passes += seconds;
            now += seconds + sum_layers(out, &traffic, &machine->fabric, stage);
        }
    }
    out->end = now;
out:
    return st;
}

/* Extrapolates: b plus `more` times its difference from a, since every micro-step after the second
 * is like the one before. */
static double further(double a, double b, double more)
{
    return b + (b - a) * more;
}

static dt_status run_all(timeline *out, const dt_recipe *recipe, int64_t vocab,
                         const dt_machine *machine, dt_arena *arena, dt_error *err)
{
    enum { SIMULATED = 4 };
    int64_t micro_steps = recipe->batch.accumulate;
    double more = (double)(micro_steps - SIMULATED);
    timeline before;
    dt_status st = DT_OK;

    if (micro_steps <= SIMULATED)
        return run(out, recipe, vocab, micro_steps, machine, arena, err);
    DT_TRY(run(&before, recipe, vocab, SIMULATED - 1, machine, arena, err));
    DT_TRY(run(out, recipe, vocab, SIMULATED, machine, arena, err));
    out->passes = further(before.passes, out->passes, more);
    out->end = further(before.end, out->end, more);
    for (int kind = 0; kind < DT_TRAFFIC_KINDS; kind++) {
        dt_prediction_messages *sum = &out->messages[kind];
        const dt_prediction_messages *less = &before.messages[kind];

        sum->count += (sum->count - less->count) * (micro_steps - SIMULATED);
        sum->bytes = further(less->bytes, sum->bytes, more);
        sum->across_bytes = further(less->across_bytes, sum->across_bytes, more);
        sum->seconds = further(less->seconds, sum->seconds, more);
    }
out:
    return st;
}

/* --- prediction of a step */

/* Returns the recipe with the number of micro-steps, at least one, with which batch.total is
 * reached on this number of GPUs. */
static dt_recipe with_micro_steps(const dt_recipe *recipe, int64_t gpus)
{
    double total = (double)recipe->batch.total;
    dt_recipe out = *recipe;

    if (total > 0)
        out.batch.accumulate = (int64_t)fmax(
            1, round(total / (double)dt_recipe_pass(recipe, dt_recipe_data_ranks(recipe, gpus))));
    return out;
}

static dt_status predict(dt_prediction *out, const dt_recipe *asked, int64_t vocab,
                         const dt_machine *machine, dt_arena *arena, dt_error *err)
{
    dt_recipe divided = with_micro_steps(asked, machine->fabric.nodes * machine->fabric.node_gpus);
    const dt_recipe *recipe = &divided;
    double rows = (double)recipe->batch.sequences * (double)recipe->batch.tokens;
    dt_memory_ranks ranks = {.world_size = machine->fabric.nodes * machine->fabric.node_gpus,
                             .replicas = 1,
                             .node_ranks = machine->fabric.node_gpus};
    dt_model_config config;
    timeline line;
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    dt_memory_estimate(&out->memory, recipe, vocab, &ranks);
    DT_TRY(run_all(&line, recipe, vocab, machine, arena, err));
    memcpy(out->messages, line.messages, sizeof(out->messages));
    for (int kind = 0; kind < DT_TRAFFIC_KINDS; kind++)
        out->message_seconds += line.messages[kind].seconds;
    out->world_size = ranks.world_size;
    out->step_tokens = rows * (double)recipe->batch.accumulate *
                       (double)dt_recipe_data_ranks(recipe, out->world_size);
    dt_model_config_make(&config, recipe, vocab);
    out->token_flops = dt_model_flops_per_token(&config);
    out->pass_seconds = line.passes;
    out->exposed_seconds = line.end - line.passes;
    out->matrix_flops = dt_matrices_rank_flops(recipe, ranks.world_size, arena);
    out->update_seconds = update_seconds(recipe, &out->memory, machine) +
                          out->matrix_flops / (machine->matrix_tflops * 1e12 * machine->efficiency);
    out->step_seconds = line.end + out->update_seconds;
    out->tokens_per_second = out->step_tokens / out->step_seconds;
    out->mfu = out->token_flops * out->tokens_per_second /
               (machine->tflops * 1e12 * (double)out->world_size);
out:
    return st;
}

dt_status dt_predict(dt_prediction *out, const dt_recipe *recipe, int64_t vocab,
                     const dt_machine *machine, dt_arena *arena, dt_error *err)
{
    dt_machine alone = *machine;
    dt_recipe whole = *recipe;
    dt_prediction one;
    dt_status st = DT_OK;

    alone.fabric.nodes = alone.fabric.node_gpus = 1;
    whole.tensor.size = 1;
    DT_TRY(predict(&one, &whole, vocab, &alone, arena, err));
    DT_TRY(predict(out, recipe, vocab, machine, arena, err));
    out->efficiency = out->tokens_per_second / (one.tokens_per_second * (double)out->world_size);
out:
    return st;
}

dt_status dt_predict_overlap_end(int64_t *gpus, const dt_recipe *recipe, int64_t vocab,
                                 const dt_machine *machine, dt_arena *arena, dt_error *err)
{
    int64_t most = machine->fabric.node_gpus;
    dt_machine larger = *machine;
    dt_prediction prediction;
    dt_status st = DT_OK;

    *gpus = 0;
    larger.fabric.nodes = 1;
    larger.fabric.node_gpus = most > 1 ? 2 : 1;
    while (larger.fabric.nodes * larger.fabric.node_gpus <= DT_PLAN_GPUS_MAX) {
        DT_TRY(predict(&prediction, recipe, vocab, &larger, arena, err));
        if (prediction.exposed_seconds > DT_PLAN_EXPOSED_SHARE * prediction.step_seconds) {
            *gpus = prediction.world_size;
            break;
        }
        if (larger.fabric.node_gpus < most)
            larger.fabric.node_gpus =
                2 * larger.fabric.node_gpus < most ? 2 * larger.fabric.node_gpus : most;
        else
            larger.fabric.nodes *= 2;
    }
out:
    return st;
}
