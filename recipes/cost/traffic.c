#include "recipes/cost/traffic.h"

#include <stdbool.h>
#include <string.h>

#include "recipes/architecture/architecture.h"

#define MESSAGES_MOST ((int64_t)1 << 17) /* limit of messages in a step */

typedef struct maker {
    dt_traffic *out;
    const dt_recipe *recipe;
    dt_arena *arena;
    int64_t capacity, layers, micro_steps; /* layers: blocks of the model */
    int64_t world_size;                    /* ranks of the data group */
    int64_t *unit_elems, *frozen_elems;

    /* fsdp, named as in engine/strategy/fsdp_int.h */
    bool keeps_weights, holds_grads, sends_bf16;
    int64_t *slots; /* the unit whose weights are in each slot; -1: none */
    int64_t *
        frozen_slots; /* the same of weights that are not trained: as the previous step left them */
} maker;

static int64_t micro_stages(const maker *m)
{
    return 2 * m->layers + 3;
}

static dt_status send(maker *m, dt_traffic_message message, dt_error *err)
{
    dt_traffic *out = m->out;

    if (out->count == MESSAGES_MOST)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "a step would send more than %lld messages: raise 'strategy.bucket_mb' (%g)",
                       (long long)MESSAGES_MOST, m->recipe->strategy.bucket_mb);
    out->messages =
        dt_arena_array_room(m->arena, out->messages, out->count + 1, &m->capacity, sizeof(message));
    out->messages[out->count++] = message;
    return DT_OK;
}

/* Returns the stage of a micro-step after which a unit's gradients are complete. */
static int64_t backward_stage(const maker *m, int64_t unit)
{
    return 2 * m->layers + 2 - unit;
}

static int64_t sent_elem_bytes(const dt_recipe *recipe)
{
    return recipe->strategy.reduce_dtype == DT_REDUCE_BF16 ? 2 : 4;
}

/* --- ddp: buckets of the last micro-step, from the last block to the root */

static int64_t elems_of_mb(double mb)
{
    double elems = mb * 1e6 / 4; /* counted in fp32 for every type sent */

    return elems > 1 ? (int64_t)elems : 1;
}

typedef struct giver {
    maker *maker;
    dt_error *err;
    dt_status st;
} giver;

static void give(void *self, const dt_param *matrix)
{
    giver *to = self;

    if (to->st == DT_OK)
        to->st = send(to->maker,
                      (dt_traffic_message){.kind = DT_TRAFFIC_BROADCAST,
                                           .bytes = dt_size_times(4, matrix->elems),
                                           .launched = to->maker->out->stages,
                                           .needed = to->maker->out->stages},
                      to->err);
}

/* Broadcasts of whole-matrix updates: each matrix, in fp32, from its owner. */
static dt_status give_matrices(maker *m, dt_error *err)
{
    giver to = {.maker = m, .err = err};
    dt_model_config config;

    dt_model_config_make(&config, m->recipe, 0);
    dt_model_each_matrix(&config, give, &to);
    return to.st;
}

static dt_status send_buckets(maker *m, dt_error *err)
{
    int64_t usual = elems_of_mb(m->recipe->strategy.bucket_mb);
    int64_t most = elems_of_mb(m->recipe->strategy.first_bucket_mb);
    int64_t begin = (m->micro_steps - 1) * micro_stages(m);
    dt_status st = DT_OK;

    if (most > usual)
        most = usual;
    for (int64_t unit = m->layers; unit >= 0; unit--) {
        for (int64_t left = m->unit_elems[unit]; left > 0; most = usual) {
            int64_t elems = left < most ? left : most;
            dt_traffic_message bucket = {.kind = DT_TRAFFIC_ALL_REDUCE,
                                         .bytes = elems * sent_elem_bytes(m->recipe),
                                         .launched = begin + backward_stage(m, unit) + 1,
                                         .needed = m->out->stages};

            DT_TRY(send(m, bucket, err));
            left -= elems;
        }
    }
    if (dt_optimizers[m->recipe->optimizer.kind].whole_matrices != NULL)
        DT_TRY(give_matrices(m, err));
out:
    return st;
}

/* --- fsdp: gathers before a unit's use, reduce-scatters after it */

/* Blocks alternate between two slots unless each has its own; the root has its own slot. */
static int64_t place(int64_t unit, bool each)
{
    return each || unit == 0 ? unit : 1 + (unit - 1) % 2;
}

static int64_t padded(const maker *m, int64_t elems)
{
    return m->world_size * dt_fsdp_part_elems(elems, m->world_size);
}

static int64_t padded_elems(const maker *m, int64_t unit)
{
    return padded(m, m->unit_elems[unit]);
}

static dt_status gather_into(maker *m, int64_t *slot, int64_t unit, int64_t elems, int64_t launched,
                             int64_t needed, dt_error *err)
{
    int64_t elem_bytes = m->recipe->precision.kind == DT_PRECISION_FP32 ? 4 : 2;

    if (*slot == unit || elems == 0)
        return DT_OK;
    *slot = unit;
    return send(m,
                (dt_traffic_message){.kind = DT_TRAFFIC_ALL_GATHER,
                                     .bytes = padded(m, elems) * elem_bytes,
                                     .launched = launched,
                                     .needed = needed},
                err);
}

static dt_status gather(maker *m, int64_t unit, int64_t launched, int64_t needed, dt_error *err)
{
    int64_t at = place(unit, m->keeps_weights);
    dt_status st = DT_OK;

    DT_TRY(
        gather_into(m, &m->frozen_slots[at], unit, m->frozen_elems[unit], launched, needed, err));
    DT_TRY(gather_into(m, &m->slots[at], unit, m->unit_elems[unit], launched, needed, err));
out:
    return st;
}

/* Returns the stage that needs the buffer of the gradients being sent again: that of the block two further
 * down, or of the first block with this buffer in the next micro-step. If rounded copies of whole gradients
 * are sent, only when the next gradients are computed. */
static int64_t lane_wanted(const maker *m, int64_t unit, int64_t micro_step)
{
    int64_t begin = micro_step * micro_stages(m), next = begin + micro_stages(m);
    int64_t last = m->layers, computed = m->holds_grads ? 1 : 0;

    if (m->holds_grads && !m->sends_bf16)
        return m->out->stages;
    if (unit > 2)
        return begin + backward_stage(m, unit - 2) + computed;
    if (micro_step == m->micro_steps - 1)
        return m->out->stages;
    if (unit == 0)
        return next + m->layers + 1;
    return next + backward_stage(m, (last - unit) % 2 == 0 ? last : last - 1);
}

static dt_status reduce(maker *m, int64_t unit, int64_t micro_step, dt_error *err)
{
    if (m->holds_grads && micro_step < m->micro_steps - 1)
        return DT_OK;
    return send(
        m,
        (dt_traffic_message){.kind = DT_TRAFFIC_REDUCE_SCATTER,
                             .bytes = padded_elems(m, unit) * sent_elem_bytes(m->recipe),
                             .launched = micro_step * micro_stages(m) + backward_stage(m, unit) + 1,
                             .needed = lane_wanted(m, unit, micro_step)},
        err);
}

/* Returns whether other ranks hold the same parts and sum them after this micro-step. */
static bool sums_replicas(const maker *m, int64_t micro_step)
{
    return m->out->groups[DT_TRAFFIC_REPLICAS].ranks > 1 && micro_step == m->micro_steps - 1;
}

static dt_status sum_replicas(maker *m, int64_t unit, int64_t launched, dt_error *err)
{
    return send(m,
                (dt_traffic_message){.kind = DT_TRAFFIC_ALL_REDUCE,
                                     .peers = DT_TRAFFIC_REPLICAS,
                                     .bytes = padded_elems(m, unit) / m->world_size *
                                              sent_elem_bytes(m->recipe),
                                     .launched = launched,
                                     .needed = m->out->stages},
                err);
}

static dt_status pass(maker *m, int64_t micro_step, dt_error *err)
{
    int64_t begin = micro_step * micro_stages(m), L = m->layers;
    dt_status st = DT_OK;

    for (int64_t unit = 0; unit <= L; unit++) {
        DT_TRY(gather(m, unit, begin + unit, begin + unit, err));
        if (unit < L)
            DT_TRY(gather(m, unit + 1, begin + unit, begin + unit + 1, err));
    }
    DT_TRY(gather(m, L, begin + L + 1, begin + L + 2, err));
    for (int64_t unit = L; unit >= 1; unit--) {
        int64_t stage = begin + backward_stage(m, unit);

        DT_TRY(gather(m, unit, stage, stage, err));
        if (unit > 1)
            DT_TRY(gather(m, unit - 1, stage, stage + 1, err));
        /* the part of the block two further up is complete: its reduction has been waited for */
        if (unit + 2 <= L && sums_replicas(m, micro_step))
            DT_TRY(sum_replicas(m, unit + 2, stage + (m->holds_grads ? 1 : 0), err));
        DT_TRY(reduce(m, unit, micro_step, err));
    }
    DT_TRY(reduce(m, 0, micro_step, err));
    for (int64_t unit = 0; unit <= 2 && unit <= L && sums_replicas(m, micro_step); unit++)
        DT_TRY(sum_replicas(m, unit, m->out->stages, err));
out:
    return st;
}

/* Gathers for whole-matrix updates: the blocks, in fp32, during the update. */
static dt_status gather_directions(maker *m, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t unit = 1; unit <= m->layers; unit++)
        DT_TRY(send(m,
                    (dt_traffic_message){.kind = DT_TRAFFIC_ALL_GATHER,
                                         .bytes = 4 * padded_elems(m, unit),
                                         .launched = m->out->stages,
                                         .needed = m->out->stages},
                    err));
out:
    return st;
}

static dt_status send_shards(maker *m, dt_error *err)
{
    const dt_recipe *recipe = m->recipe;
    bool full = recipe->strategy.shard == DT_SHARD_FULL;
    dt_status st = DT_OK;

    m->keeps_weights = !full || !recipe->strategy.reshard_after_forward;
    m->holds_grads =
        recipe->strategy.shard == DT_SHARD_OPTIMIZER || !recipe->strategy.reduce_each_micro_step;
    m->sends_bf16 = recipe->strategy.reduce_dtype == DT_REDUCE_BF16;
    m->slots = dt_arena_alloc_array(m->arena, (size_t)m->layers + 3, sizeof(*m->slots));
    m->frozen_slots =
        dt_arena_alloc_array(m->arena, (size_t)m->layers + 3, sizeof(*m->frozen_slots));
    for (int64_t i = 0; i < m->layers + 3; i++) {
        m->slots[i] = -1;
        m->frozen_slots[i] = i; /* the backward pass ends with the first blocks */
    }
    for (int64_t micro_step = 0; micro_step < m->micro_steps; micro_step++)
        DT_TRY(pass(m, micro_step, err));
    if (dt_optimizers[recipe->optimizer.kind].whole_matrices)
        DT_TRY(gather_directions(m, err));
out:
    return st;
}

static dt_status count_units(maker *m, int64_t vocab, dt_error *err)
{
    dt_model_config config;
    const dt_architecture *kind = dt_architecture_find(m->recipe->model.kind);
    int units;

    dt_model_config_make(&config, m->recipe, vocab);
    units = kind->units(&config);
    m->layers = units - 1;
    m->out->recomputes = config.recompute == DT_RECOMPUTE_FULL;
    m->out->sum_bytes = dt_size_times(dt_size_times(config.batch, config.tokens),
                                      dt_size_times(4, config.decoder.embed));
    m->unit_elems = dt_arena_alloc_array(m->arena, (size_t)units, sizeof(*m->unit_elems));
    m->frozen_elems = dt_arena_alloc_array(m->arena, (size_t)units, sizeof(*m->frozen_elems));
    m->out->unit_sums = dt_arena_alloc_array(m->arena, (size_t)units, sizeof(*m->out->unit_sums));
    for (int unit = 0; unit < units; unit++) {
        m->unit_elems[unit] = dt_model_unit_elems(&config, unit);
        m->frozen_elems[unit] = dt_model_unit_frozen_elems(&config, unit);
        if (dt_tensor_ranks(&config.tensor) > 1)
            m->out->unit_sums[unit] = kind->sums(&config, unit);
    }
    return DT_OK;
}

/* --- groups */

/* Returns the group of `ranks` ranks that are `stride` apart, if `node_ranks` adjacent ranks are on each node. */
static dt_traffic_group group_of(int64_t ranks, int64_t stride, int64_t node_ranks)
{
    int64_t on_node = node_ranks > stride ? node_ranks / stride : 1; /* ranks of a group */
    int64_t held = on_node < ranks ? on_node : ranks;

    return (dt_traffic_group){ranks, (ranks + held - 1) / held, node_ranks / held};
}

/* Groups as the mesh of the engine has them (engine/comm/mesh.h). */
static void make_groups(dt_traffic *out, const dt_recipe *recipe, int64_t world_size,
                        int64_t node_ranks)
{
    int64_t on_node = node_ranks > 0 && node_ranks < world_size ? node_ranks : world_size;
    int64_t tensor = recipe->tensor.size < world_size ? recipe->tensor.size : world_size;
    int64_t data = dt_recipe_data_ranks(recipe, world_size), size = data;

    if (recipe->strategy.kind == DT_STRATEGY_FSDP)
        size = dt_recipe_shard_ranks(recipe, world_size, on_node);
    out->groups[DT_TRAFFIC_TENSOR] = group_of(tensor, 1, on_node);
    out->groups[DT_TRAFFIC_DATA] = group_of(size, tensor, on_node);
    out->groups[DT_TRAFFIC_REPLICAS] = group_of(data / size, size * tensor, on_node);
}

/* --- sums */

int64_t dt_traffic_sums(const dt_traffic *traffic, int64_t stage)
{
    int64_t L = traffic->blocks, at = stage % (2 * L + 3);
    const dt_unit_sums *sums = traffic->unit_sums;

    if (traffic->groups[DT_TRAFFIC_TENSOR].ranks == 1 || stage >= traffic->stages ||
        at == 2 * L + 2)
        return 0;
    if (at == L + 1)
        return sums[0].backward;
    if (at <= L)
        return sums[at].forward;
    sums += 2 * L + 2 - at;
    return sums->backward + (traffic->recomputes && at > L + 2 ? sums->again : 0);
}

/* Returns the share of its bytes that each of `count` ranks or nodes sends of a message. */
static double share_of(dt_traffic_kind kind, int64_t count)
{
    return (kind == DT_TRAFFIC_ALL_REDUCE ? 2 : 1) * (double)(count - 1) / (double)count;
}

/* Returns the number of sums within layers in a step. */
static double count_sums(const dt_traffic *traffic)
{
    double sums = 0;

    for (int64_t stage = 0; stage < traffic->stages; stage++)
        sums += (double)dt_traffic_sums(traffic, stage);
    return sums;
}

double dt_traffic_sent_bytes(const dt_traffic *traffic)
{
    double sent = count_sums(traffic) * (double)traffic->sum_bytes *
                  share_of(DT_TRAFFIC_ALL_REDUCE, traffic->groups[DT_TRAFFIC_TENSOR].ranks);

    for (int64_t i = 0; i < traffic->count; i++) {
        const dt_traffic_message *message = &traffic->messages[i];

        sent +=
            (double)message->bytes * share_of(message->kind, traffic->groups[message->peers].ranks);
    }
    return sent;
}

double dt_traffic_across(dt_traffic_kind kind, const dt_traffic_group *group, int64_t bytes)
{
    return (double)bytes * share_of(kind, group->nodes) * (double)group->at_once;
}

double dt_traffic_across_bytes(const dt_traffic *traffic, double *sums)
{
    double sent = 0;

    for (int64_t i = 0; i < traffic->count; i++) {
        const dt_traffic_message *message = &traffic->messages[i];

        sent += dt_traffic_across(message->kind, &traffic->groups[message->peers], message->bytes);
    }
    *sums = count_sums(traffic) * dt_traffic_across(DT_TRAFFIC_ALL_REDUCE,
                                                    &traffic->groups[DT_TRAFFIC_TENSOR],
                                                    traffic->sum_bytes);
    return sent + *sums;
}

dt_status dt_traffic_make(dt_traffic *out, const dt_recipe *recipe, int64_t vocab,
                          int64_t world_size, int64_t node_ranks, int64_t micro_steps,
                          dt_arena *arena, dt_error *err)
{
    maker m = {.out = out, .recipe = recipe, .arena = arena, .micro_steps = micro_steps};
    dt_status st = DT_OK;

    *out = (dt_traffic){0};
    DT_TRY(count_units(&m, vocab, err));
    out->blocks = m.layers;
    out->stages = micro_steps * micro_stages(&m);
    make_groups(out, recipe, world_size, node_ranks);
    m.world_size = out->groups[DT_TRAFFIC_DATA].ranks;
    if (dt_recipe_data_ranks(recipe, world_size) == 1)
        goto out;
    if (recipe->strategy.kind == DT_STRATEGY_DP)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'strategy: dp' uses one process: with %lld ranks use 'ddp' or 'fsdp'",
                 (long long)world_size);
    DT_TRY(recipe->strategy.kind == DT_STRATEGY_DDP ? send_buckets(&m, err) : send_shards(&m, err));
out:
    return st;
}
