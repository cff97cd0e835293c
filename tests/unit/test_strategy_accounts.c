/* Compares the memory and traffic that each strategy reports with the formulas of its file, on 1 to 4 ranks. 5 % are
 * allowed for padding, in a model of 55 thousand parameters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/comm/comm_int.h"
#include "recipes/cost/traffic.h"
#include "recipes/fields/fields.h"
#include "tests/dist/ranks.h"
#include "tests/unit/comm_support.h"
#include "tests/unit/strategy_support.h"

/* Bytes per parameter element of W ranks: all + divided / W. */
typedef struct row {
    const char *name;
    const dt_strategy *strategy;
    dt_dtype dtype;
    dt_shard_kind shard;
    bool reshard, each;
    double all, divided;
} row;

static const row rows[] = {
    {"ddp", &dt_strategy_ddp, DT_F32, 0, true, true, 16, 0},
    {"ddp bf16", &dt_strategy_ddp, DT_BF16, 0, true, true, 18, 0},
    {"full", &dt_strategy_fsdp, DT_F32, DT_SHARD_FULL, true, true, 0, 16},
    {"full bf16", &dt_strategy_fsdp, DT_BF16, DT_SHARD_FULL, true, true, 0, 16},
    {"full kept", &dt_strategy_fsdp, DT_F32, DT_SHARD_FULL, false, true, 0, 16},
    {"full, whole gradients", &dt_strategy_fsdp, DT_F32, DT_SHARD_FULL, true, false, 4, 12},
    {"zero-2", &dt_strategy_fsdp, DT_F32, DT_SHARD_GRADIENTS, true, true, 4, 12},
    {"zero-2 bf16", &dt_strategy_fsdp, DT_BF16, DT_SHARD_GRADIENTS, true, true, 2, 16},
    {"zero-1", &dt_strategy_fsdp, DT_F32, DT_SHARD_OPTIMIZER, true, true, 8, 8},
    {"zero-1 bf16", &dt_strategy_fsdp, DT_BF16, DT_SHARD_OPTIMIZER, true, true, 6, 12},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static bool near(double value, double expected)
{
    return fabs(value - expected) <= 0.05 * expected;
}

/* Returns the bytes sent in a step of `micro_steps`, before the factor (W-1)/W. */
static double expected_traffic(const row *r, const trainee *t, int64_t micro_steps)
{
    double weight_bytes = (double)dt_dtype_bytes(r->dtype), root, block, all, gathered, reduced;

    root = (double)t->model->units[0].elems;
    block = (double)t->model->units[1].elems;
    all = root + LAYERS * block;
    if (r->strategy == &dt_strategy_ddp)
        return 2 * 4 * all;
    gathered = all;
    if (r->shard == DT_SHARD_FULL && r->reshard) /* each further pass finds two blocks gathered */
        gathered += (double)(2 * micro_steps - 1) * (LAYERS - 2) * block;
    reduced = r->shard == DT_SHARD_OPTIMIZER || !r->each ? all : (double)micro_steps * all;
    return weight_bytes * gathered + 4 * reduced;
}

/* Returns the bytes that the ranks of a group send for a message. */
static int64_t message_bytes(const dt_traffic_message *message, int64_t size)
{
    if (message->kind == DT_TRAFFIC_ALL_REDUCE)
        return size * dt_comm_all_reduce_bytes(size, message->bytes);
    return (size - 1) * message->bytes; /* W parts by each, or a broadcast by its root */
}

/* Returns the bytes that `dtrun plan` computes from the recipe for the same step of all ranks. */
static int64_t planned_bytes(const row *r, const trainee *t, int64_t micro_steps)
{
    const dt_group *replicas = &t->state.mesh.axis[DT_AXIS_REPLICA];
    int64_t world_size = t->state.mesh.world.size;
    bool within = r->strategy == &dt_strategy_fsdp && replicas->size > 1;
    const dt_model_config *config = &t->model->config;
    dt_traffic traffic;
    dt_recipe recipe;
    dt_arena arena;
    int64_t sum = 0;

    dt_recipe_init(&recipe);
    recipe.model.layers = config->decoder.layers;
    recipe.model.embed = config->decoder.embed;
    recipe.model.vocab = config->decoder.vocab;
    recipe.batch.tokens = config->tokens;
    recipe.lora.rank = config->lora.rank;
    recipe.precision.kind = r->dtype == DT_F32 ? DT_PRECISION_FP32 : DT_PRECISION_BF16;
    recipe.strategy.kind = r->strategy == &dt_strategy_ddp ? DT_STRATEGY_DDP : DT_STRATEGY_FSDP;
    recipe.strategy.shard = r->shard;
    recipe.strategy.reshard_after_forward = r->reshard;
    recipe.strategy.reduce_each_micro_step = r->each;
    recipe.optimizer = t->state.options.optimizer;
    recipe.strategy.within = within ? DT_WITHIN_NODE : DT_WITHIN_RUN;
    dt_arena_init(&arena, 0);
    if (dt_traffic_make(&traffic, &recipe, 0, world_size, within ? replicas->stride : 0,
                        micro_steps, &arena, NULL) == DT_OK)
        for (int64_t i = 0; i < traffic.count; i++) {
            int64_t size = traffic.groups[traffic.messages[i].peers].ranks;

            sum += world_size / size * message_bytes(&traffic.messages[i], size);
        }
    dt_arena_release(&arena);
    return sum;
}

/* What planned_bytes takes for the recipe's lora: of the model of trainee_config, all targets. */
#define RANK 4

static int check_adapter(const row *r, dt_events *events, int rank, int world_size)
{
    dt_strategy_options options = default_options();
    dt_model_config config = trainee_config(r->dtype);
    bool divides = r->strategy == &dt_strategy_fsdp;
    dt_mesh mesh = dt_mesh_of(rank, divides ? 1 : world_size, divides ? world_size : 1, 1);
    double trained, frozen, loss;
    int64_t sent;
    trainee t;

    options.shard = r->shard;
    options.reshard_after_forward = r->reshard;
    options.reduce_each_micro_step = r->each;
    config.lora = (dt_lora_config){.rank = RANK, .scale = 1, .targets = UINT32_MAX};
    CHECK(!open_trainee_of(&t, r->strategy, &options, &config, events, &mesh, NULL));
    CHECK(!set_trainee_base(&t, NULL));
    trained = (double)dt_model_config_trained_elems(&config);
    frozen = (double)dt_model_config_elems(&config) - trained;
    if (divides && r->shard == DT_SHARD_FULL)
        frozen /= world_size;
    /* a padded unit of an adapter is a few hundred elements */
    CHECK(fabs((double)t.state.held_bytes - (r->all + r->divided / world_size) * trained -
               (double)dt_dtype_bytes(r->dtype) * frozen) <=
          0.05 * (double)t.state.held_bytes + 16.0 * 16 * world_size * (LAYERS + 1));
    for (int64_t micro_steps = 1; micro_steps <= 3; micro_steps++) {
        CHECK(
            !train_step(&t, micro_steps, &loss, NULL)); /* the first gathers what it has not kept */
        sent = t.state.sent_bytes;
        CHECK(!train_step(&t, micro_steps, &loss, NULL));
        CHECK(world_size * (t.state.sent_bytes - sent) == planned_bytes(r, &t, micro_steps));
    }
    close_trainee(&t);
    return 0;
}

static int check_row(const row *r, dt_events *events, int rank, int world_size)
{
    dt_strategy_options options = default_options();
    double elems, shard = (double)(world_size - 1) / world_size, loss;
    int64_t sent;
    trainee t;

    options.shard = r->shard;
    options.reshard_after_forward = r->reshard;
    options.reduce_each_micro_step = r->each;
    CHECK(open_trainee(&t, r->strategy, &options, r->dtype, events, rank, world_size, NULL) ==
          DT_OK);
    elems = (double)trainee_elems(&t);
    CHECK(near((double)t.state.held_bytes, (r->all + r->divided / world_size) * elems));
    CHECK(t.state.held_bytes ==
          t.state.parameters_bytes + t.state.gradients_bytes + t.state.optimizer_bytes);
    CHECK(near((double)t.state.optimizer_bytes,
               8 * elems / (r->strategy == &dt_strategy_ddp ? 1 : world_size)));
    for (int64_t micro_steps = 1; micro_steps <= 3; micro_steps++) {
        double traffic = expected_traffic(r, &t, micro_steps);

        sent = t.state.sent_bytes;
        CHECK(train_step(&t, micro_steps, &loss, NULL) == DT_OK);
        CHECK(near((double)(t.state.sent_bytes - sent), shard * traffic));
        CHECK(world_size * (t.state.sent_bytes - sent) == planned_bytes(r, &t, micro_steps));
        /* 2 S, or 3 S if blocks are gathered twice */
        if (r->dtype == DT_F32 && micro_steps == 1)
            CHECK(traffic <= (r->shard == DT_SHARD_FULL && r->reshard ? 3 : 2) * 4 * elems);
    }
    close_trainee(&t);
    return 0;
}

/* Two nodes of two ranks: each holds a half, and sums its half with the other node once a step. */
static int check_within_nodes(const row *r, dt_events *events, int rank)
{
    dt_strategy_options options = default_options();
    dt_mesh mesh = dt_mesh_of(rank, 2, 2, 1);
    double elems, loss;
    int64_t sent;
    trainee t;

    options.shard = r->shard;
    options.reshard_after_forward = r->reshard;
    options.reduce_each_micro_step = r->each;
    CHECK(!open_trainee_on(&t, r->strategy, &options, r->dtype, events, &mesh, NULL));
    elems = (double)trainee_elems(&t);
    CHECK(near((double)t.state.held_bytes, (r->all + r->divided / 2) * elems));
    for (int64_t micro_steps = 1; micro_steps <= 3; micro_steps++) {
        sent = t.state.sent_bytes;
        CHECK(!train_step(&t, micro_steps, &loss, NULL));
        CHECK(near((double)(t.state.sent_bytes - sent),
                   expected_traffic(r, &t, micro_steps) / 2 + 4 * elems / 2));
        CHECK(4 * (t.state.sent_bytes - sent) == planned_bytes(r, &t, micro_steps));
    }
    close_trainee(&t);
    return 0;
}

/* One moment for matrices with whole-matrix updates, two for the rest; the blocks are gathered once more. */
static int check_gathered_matrices(dt_events *events, int rank, int world_size)
{
    const row r = {"muon", &dt_strategy_fsdp, DT_F32, DT_SHARD_FULL, true, true, 0, 0};
    dt_strategy_options options = default_options();
    double states = 0, loss;
    int64_t sent;
    trainee t;

    options.optimizer.kind = DT_OPTIMIZER_MUON;
    CHECK(!open_trainee(&t, r.strategy, &options, r.dtype, events, rank, world_size, NULL));
    for (int i = 0; i < t.model->param_count; i++)
        states +=
            (double)t.model->params[i].elems * (dt_param_is_matrix(&t.model->params[i]) ? 1 : 2);
    CHECK(near((double)t.state.optimizer_bytes, 4 * states / world_size));
    sent = t.state.sent_bytes;
    CHECK(!train_step(&t, 1, &loss, NULL));
    CHECK(world_size * (t.state.sent_bytes - sent) == planned_bytes(&r, &t, 1));
    close_trainee(&t);
    return 0;
}

/* Every rank updates some matrices and broadcasts them. */
static int check_given_matrices(dt_events *events, int rank, int world_size)
{
    const row r = {"muon", &dt_strategy_ddp, DT_F32, 0, true, true, 0, 0};
    dt_strategy_options options = default_options();
    double sent, loss;
    trainee t;

    options.optimizer.kind = DT_OPTIMIZER_MUON;
    CHECK(!open_trainee(&t, r.strategy, &options, r.dtype, events, rank, world_size, NULL));
    sent = -(double)t.state.sent_bytes;
    CHECK(!train_step(&t, 1, &loss, NULL));
    sent += (double)t.state.sent_bytes;
    CHECK(!t.comm.all_reduce_f64(&t.comm, &sent, 1, NULL));
    CHECK(sent == (double)planned_bytes(&r, &t, 1));
    close_trainee(&t);
    return 0;
}

static int body(int rank, void *self)
{
    const int *world_size = self;
    dt_events *events;

    CHECK(dt_events_open(&events, rank, *world_size, NULL) == DT_OK);
    for (size_t i = 0; i < ROWS; i++)
        if (check_row(&rows[i], events, rank, *world_size) != 0 ||
            check_adapter(&rows[i], events, rank, *world_size) != 0 ||
            (*world_size == 4 && rows[i].strategy == &dt_strategy_fsdp &&
             check_within_nodes(&rows[i], events, rank) != 0)) {
            fprintf(stderr, "in the row '%s' on %d ranks\n", rows[i].name, *world_size);
            return 1;
        }
    CHECK(!check_gathered_matrices(events, rank, *world_size));
    CHECK(!check_given_matrices(events, rank, *world_size));
    dt_events_close(events);
    return 0;
}

static void test_a_rank_holds_and_sends_as_in_the_tables(void **state)
{
    for (int world_size = 1; world_size <= 4; world_size++) {
        ranks all = {
            .world_size = world_size, .timeout_seconds = 250, .body = body, .self = &world_size};

        assert_int_equal(ranks_run(&all), 0);
    }
}

/* The gathered root and two blocks, and as much in fp32 for gradients being sent. */
static void test_full_sharding_has_buffers_for_the_root_and_two_blocks(void **state)
{
    dt_strategy_options options = default_options();
    int64_t there, batch = 2 * SEQUENCES * TOKENS * 4;
    trainee t;

    assert_int_equal(open_trainee(&t, &dt_strategy_fsdp, &options, DT_BF16, NULL, 0, 1, NULL),
                     DT_OK);
    there = t.model->units[0].elems + 2 * t.model->units[1].elems;
    assert_in_range(t.state.buffers_bytes, (2 + 4) * there, (2 + 4) * there + batch + 128);
    close_trainee(&t);
}

static void test_dp_holds_a_copy_per_replica(void **state)
{
    dt_strategy_options options = default_options();
    int64_t elems, sent;
    double loss;
    trainee t;

    options.replicas = 3;
    assert_int_equal(open_trainee(&t, &dt_strategy_dp, &options, DT_BF16, NULL, 0, 1, NULL), DT_OK);
    elems = trainee_elems(&t);
    assert_int_equal(t.state.held_bytes, (18 + 2 * 6) * elems);
    assert_true(t.state.buffers_bytes > 2 * (int64_t)t.model->activation_bytes);
    sent = t.state.sent_bytes;
    assert_int_equal(train_step(&t, 2, &loss, NULL), DT_OK);
    assert_int_equal(t.state.sent_bytes - sent, 2 * (4 + 2) * elems);
    close_trainee(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rank_holds_and_sends_as_in_the_tables),
        cmocka_unit_test(test_full_sharding_has_buffers_for_the_root_and_two_blocks),
        cmocka_unit_test(test_dp_holds_a_copy_per_replica),
    };

    return cmocka_run_group_tests_name("strategy: held and sent", tests, NULL, NULL);
}
