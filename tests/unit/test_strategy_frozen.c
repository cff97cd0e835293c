/* Frozen parameters under dp, ddp and fsdp, on 1 to 3 ranks: the same training as in one process, less memory, and their
 * values unchanged to the bit, also through an export and an import. Likewise adapters, whose base is set piece by piece
 * and never exported.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/dist/ranks.h"
#include "tests/unit/comm_support.h"
#include "tests/unit/strategy_support.h"

#define STEPS  4
#define RANKS  3
#define VOCAB  11
#define ROWS   (RANKS * SEQUENCES) /* of a step, whoever computes them */
#define PARAMS 128

static const char *const patterns[] = {
    "*weight",         /* all matrices: biases alone are trained */
    "h.1.* h.2.*",     /* whole blocks, one after the other */
    "h.* wte.* wpe.*", /* all but the final norm */
    "wte.* h.*.attn.* *ln_*",
    "*bias",
};
#define PATTERNS ((int)(sizeof(patterns) / sizeof(patterns[0])))

typedef struct way {
    const char *name;
    const dt_strategy *strategy;
    dt_shard_kind shard;
    bool reshard, each, bf16;
    bool replicas; /* ranks hold the same parts */
} way;

static const way ways[] = {
    {"ddp", &dt_strategy_ddp, DT_SHARD_FULL, true, true, false, false},
    {"full", &dt_strategy_fsdp, DT_SHARD_FULL, true, true, false, false},
    {"full kept", &dt_strategy_fsdp, DT_SHARD_FULL, false, true, false, false},
    {"full, whole gradients", &dt_strategy_fsdp, DT_SHARD_FULL, true, false, false, false},
    {"zero-2", &dt_strategy_fsdp, DT_SHARD_GRADIENTS, true, true, false, false},
    {"zero-1", &dt_strategy_fsdp, DT_SHARD_OPTIMIZER, true, true, false, false},
    {"ddp, bf16 sent", &dt_strategy_ddp, DT_SHARD_FULL, true, true, true, false},
    {"full, bf16 sent", &dt_strategy_fsdp, DT_SHARD_FULL, true, true, true, false},
    {"replicas", &dt_strategy_fsdp, DT_SHARD_FULL, true, true, false, true},
    {"replicas, bf16 sent", &dt_strategy_fsdp, DT_SHARD_GRADIENTS, true, false, true, true},
};
#define WAYS ((int)(sizeof(ways) / sizeof(ways[0])))

static const way dp = {"dp", &dt_strategy_dp, DT_SHARD_FULL, true, true, false, false};

static dt_strategy_options options_of(const way *w, dt_optimizer_kind optimizer)
{
    dt_strategy_options options = default_options();

    options.shard = w->shard;
    options.reshard_after_forward = w->reshard;
    options.reduce_each_micro_step = w->each;
    options.reduce_dtype = w->bf16 ? DT_REDUCE_BF16 : DT_REDUCE_FP32;
    options.optimizer = (dt_optimizer_options){
        .kind = optimizer, .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8};
    return options;
}

/* Of the model of trainee_config: A and B of every matrix. */
static const dt_lora_config adapter = {.rank = 3, .scale = 2, .targets = UINT32_MAX};

/* frozen NULL: with an adapter. */
static dt_status open_frozen(trainee *out, const way *w, const dt_strategy_options *options,
                             dt_dtype dtype, const char *frozen, int64_t rows, dt_events *events,
                             int rank, int world_size, dt_error *err)
{
    dt_model_config config = trainee_config(dtype);
    bool divides = w->strategy == &dt_strategy_fsdp && !w->replicas;
    dt_mesh mesh = dt_mesh_of(rank, divides ? 1 : world_size, divides ? world_size : 1, 1);

    config.batch = rows;
    config.frozen = frozen;
    if (frozen == NULL)
        config.lora = adapter;
    if (open_trainee_of(out, w->strategy, options, &config, events, &mesh, err) != DT_OK)
        return DT_ERR_IO;
    return frozen == NULL ? set_trainee_base(out, err) : DT_OK;
}

/* A step over the ROWS rows of `step`, of which this rank computes its share; *loss: the mean over all. */
static dt_status step_of(trainee *t, int step, int world_size, int rank, double *loss,
                         dt_error *err)
{
    const dt_strategy *strategy = t->state.strategy;
    int32_t inputs[ROWS * TOKENS], targets[ROWS * TOKENS];
    int64_t first = ROWS * rank / world_size, end = ROWS * (rank + 1) / world_size;
    dt_optimizer_args args = {
        .options = t->state.options.optimizer, .lr = 1e-2, .grad_scale = 1, .step = step + 1};
    double scale = 1.0 / (ROWS * TOKENS), norm;
    dt_micro_batch batch = {
        .inputs = {dt_tensor_2d(inputs + first * TOKENS, DT_I32, end - first, TOKENS),
                   dt_tensor_2d(targets + first * TOKENS, DT_I32, end - first, TOKENS)},
        .samples = end - first};
    dt_status st = DT_OK;

    for (int i = 0; i < ROWS * TOKENS; i++) {
        inputs[i] = (i * 5 + step) % VOCAB;
        targets[i] = (inputs[i] + 1) % VOCAB;
    }
    DT_TRY(strategy->step_begin(&t->state, 1, err));
    DT_TRY(strategy->forward_backward(&t->state, &batch, scale, loss, err));
    DT_TRY(strategy->grads_finish(&t->state, err));
    DT_TRY(strategy->grad_norm(&t->state, &norm, err));
    if (!(norm > 0))
        DT_THROW(err, DT_ERR_CORRUPT, "a gradient norm of %g", norm);
    DT_TRY(strategy->update(&t->state, &args, err));
    *loss *= scale;
    DT_TRY(t->comm.all_reduce_f64(&t->comm, loss, 1, err));
out:
    return st;
}

/* Sums of bits of every parameter's exported values: of the values as numbers, over all ranks. */
static dt_status digest(trainee *t, double sums[PARAMS], double *elems, dt_error *err)
{
    const dt_state_chunk *chunks;
    int count;
    dt_status st = DT_OK;

    memset(sums, 0, PARAMS * sizeof(*sums));
    *elems = 0;
    DT_TRY(t->state.strategy->export_state(&t->state, &chunks, &count, err));
    for (int i = 0; i < count; i++) {
        for (int64_t k = 0; k < chunks[i].slice.elems; k++) {
            uint32_t bits;

            memcpy(&bits, &chunks[i].value[k], sizeof(bits));
            /* exact: less than 2^53 in all */
            sums[chunks[i].param] += (double)(bits % 1000003);
        }
        *elems += (double)chunks[i].slice.elems;
    }
    DT_TRY(t->comm.all_reduce_f64(&t->comm, sums, PARAMS, err));
    DT_TRY(t->comm.all_reduce_f64(&t->comm, elems, 1, err));
out:
    return st;
}

/* The losses of one process that computes all rows. All ways have the same ones: they are computed once in a process. */
static int alone(double losses[STEPS], dt_dtype dtype, const char *frozen,
                 dt_optimizer_kind optimizer, int rank)
{
    static struct {
        dt_dtype dtype;
        const char *frozen;
        dt_optimizer_kind optimizer;
        double losses[STEPS];
    } known[4 * (PATTERNS + 1)];
    static int count;
    dt_strategy_options options = options_of(&ways[0], optimizer);
    dt_error err = DT_ERROR_INIT;
    trainee t;

    for (int i = 0; i < count; i++)
        if (known[i].dtype == dtype && known[i].frozen == frozen &&
            known[i].optimizer == optimizer) {
            memcpy(losses, known[i].losses, sizeof(known[i].losses));
            return 0;
        }
    CHECK(!open_frozen(&t, &ways[0], &options, dtype, frozen, ROWS, NULL, 0, 1, &err));
    for (int i = 0; i < STEPS; i++)
        CHECK(!step_of(&t, i, 1, 0, &losses[i], &err));
    close_trainee(&t);
    known[count].dtype = dtype;
    known[count].frozen = frozen;
    known[count].optimizer = optimizer;
    memcpy(known[count++].losses, losses, sizeof(known[0].losses));
    return 0;
}

static bool agree(const double *a, const double *b, double relative)
{
    for (int i = 0; i < STEPS; i++)
        if (!(fabs(a[i] - b[i]) <= relative * a[i]))
            return false;
    return true;
}

/* Frozen parameters' values are unchanged, and those of all others changed. */
static int check_values(const trainee *t, const double *before, const double *after, int rank)
{
    for (int i = 0; i < t->model->param_count; i++)
        CHECK((before[i] == after[i]) == !t->model->params[i].trainable);
    return 0;
}

static int64_t frozen_elems(const trainee *t)
{
    int64_t elems = 0;

    for (int unit = 0; unit < t->model->unit_count; unit++)
        elems += t->model->units[unit].frozen_elems;
    return elems;
}

/* The bytes held are those of a model of the trained parameters alone, and the frozen ones in the compute type. */
static int check_memory(const trainee *t, const way *w, int rank, int world_size)
{
    double type_bytes = (double)dt_dtype_bytes(t->model->config.dtype);
    double trained = (double)trainee_elems(t), frozen = (double)frozen_elems(t);
    double divided = w->strategy == &dt_strategy_fsdp && !w->replicas ? world_size : 1, padding;
    int states = dt_optimizer_states(&t->state.options.optimizer, false);

    /* fsdp pads each unit to 16 elements a rank */
    padding = 16.0 * (2 * world_size) * t->model->unit_count;
    CHECK((double)t->state.optimizer_bytes <= 4 * states * (trained / divided + padding));
    CHECK((double)t->state.gradients_bytes <= 4 * (trained + padding));
    CHECK((double)t->state.parameters_bytes <=
          (4 + type_bytes) * (trained + padding) +
              type_bytes * (frozen / (w->shard == DT_SHARD_FULL ? divided : 1) + 2 * padding));
    return 0;
}

static int check_way(const way *w, dt_dtype dtype, const char *frozen, dt_optimizer_kind optimizer,
                     dt_events *events, int rank, int world_size)
{
    dt_strategy_options options = options_of(w, optimizer);
    double expected[STEPS], losses[STEPS], before[PARAMS], after[PARAMS], elems;
    dt_error err = DT_ERROR_INIT;
    trainee t;

    CHECK(!alone(expected, dtype, frozen, optimizer, rank));
    CHECK(!open_frozen(&t, w, &options, dtype, frozen, ROWS, events, rank, world_size, &err));
    CHECK(t.model->param_count <= PARAMS);
    CHECK(!check_memory(&t, w, rank, world_size));
    CHECK(!digest(&t, before, &elems, &err));
    CHECK(elems == (double)(frozen != NULL ? dt_model_param_elems(t.model)
                                           : dt_model_config_trained_elems(&t.model->config)));
    for (int i = 0; i < STEPS; i++)
        CHECK(!step_of(&t, i, world_size, rank, &losses[i], &err));
    if (!agree(expected, losses, w->bf16 || dtype != DT_F32 ? 1e-2 : 2e-6))
        fprintf(stderr, "%s on %d ranks, frozen %s: losses %g .. %g, in one process %g .. %g\n",
                w->name, world_size, frozen != NULL ? frozen : "below an adapter", losses[0],
                losses[STEPS - 1], expected[0], expected[STEPS - 1]);
    CHECK(agree(expected, losses, w->bf16 || dtype != DT_F32 ? 1e-2 : 2e-6));
    CHECK(!digest(&t, after, &elems, &err));
    CHECK(!check_values(&t, before, after, rank));
    close_trainee(&t);
    return 0;
}

static int check_ways(dt_events *events, int rank, int world_size)
{
    for (int i = 0; i < WAYS * PATTERNS; i++) {
        const way *w = &ways[i % WAYS];
        const char *frozen = patterns[i / WAYS];

        CHECK(!check_way(w, i % 3 == 0 ? DT_BF16 : DT_F32, frozen, DT_OPTIMIZER_ADAMW, events, rank,
                         world_size));
        CHECK(!check_way(w, DT_F32, frozen, DT_OPTIMIZER_MUON, events, rank, world_size));
    }
    return 0;
}

/* An export contains frozen values; after an import of them all ranks compute with them. */
static int check_hand_over(dt_events *events, int rank, int world_size)
{
    for (int i = 0; i < 2 * WAYS; i++) {
        const way *w = &ways[i / 2];
        dt_dtype dtype = i % 2 == 0 ? DT_F32 : DT_BF16;
        dt_strategy_options options = options_of(w, DT_OPTIMIZER_ADAMW);
        double loss_a, loss_b;
        dt_error err = DT_ERROR_INIT;
        trainee a, b;

        if (w->replicas) /* the first alone exports */
            continue;
        CHECK(!open_frozen(&a, w, &options, dtype, patterns[1], ROWS, events, rank, world_size,
                           &err));
        options.loads = true; /* starts with zeros */
        CHECK(!open_frozen(&b, w, &options, dtype, patterns[1], ROWS, events, rank, world_size,
                           &err));
        CHECK(!step_of(&a, 0, world_size, rank, &loss_a, &err));
        CHECK(!hand_over(&a, &b, &err));
        for (int step = 1; step < 3; step++) {
            CHECK(!step_of(&a, step, world_size, rank, &loss_a, &err));
            CHECK(!step_of(&b, step, world_size, rank, &loss_b, &err));
            CHECK(loss_a == loss_b);
        }
        close_trainee(&a);
        close_trainee(&b);
    }
    return 0;
}

static int check_adapters(dt_events *events, int rank, int world_size)
{
    for (int i = 0; i < WAYS; i++) {
        CHECK(!check_way(&ways[i], i % 2 == 0 ? DT_BF16 : DT_F32, NULL, DT_OPTIMIZER_ADAMW, events,
                         rank, world_size));
        CHECK(!check_way(&ways[i], DT_F32, NULL, DT_OPTIMIZER_MUON, events, rank, world_size));
    }
    return 0;
}

typedef struct rank_task {
    int world_size;
    int (*check)(dt_events *events, int rank, int world_size);
} rank_task;

static int body(int rank, void *self)
{
    const rank_task *task = self;
    dt_events *events;
    int failed;

    CHECK(dt_events_open(&events, rank, task->world_size, NULL) == DT_OK);
    failed = task->check(events, rank, task->world_size);
    dt_events_close(events);
    return failed;
}

static void on_ranks(int (*check)(dt_events *, int, int))
{
    for (int world_size = 1; world_size <= RANKS; world_size++) {
        rank_task task = {world_size, check};
        ranks all = {.world_size = world_size, .timeout_seconds = 250, .body = body, .self = &task};

        assert_int_equal(ranks_run(&all), 0);
    }
}

static void test_ranks_train_like_one_process_with_less_memory(void **state)
{
    on_ranks(check_ways);
}

static void test_adapters_train_like_in_one_process_with_less_memory(void **state)
{
    on_ranks(check_adapters);
}

static void test_frozen_values_are_exported_and_imported(void **state)
{
    on_ranks(check_hand_over);
}

/* --- one process */

static void test_replicas_train_like_one_process(void **state)
{
    for (int i = 0; i <= PATTERNS; i++) {
        dt_strategy_options options = options_of(&ways[0], DT_OPTIMIZER_ADAMW);
        const char *frozen = i < PATTERNS ? patterns[i] : NULL;
        double expected[STEPS], losses[STEPS], before[PARAMS], after[PARAMS], elems;
        trainee t;

        assert_int_equal(alone(expected, DT_F32, frozen, DT_OPTIMIZER_ADAMW, 0), 0);
        options.replicas = 3;
        assert_int_equal(open_frozen(&t, &dp, &options, DT_F32, frozen, ROWS / 3, NULL, 0, 1, NULL),
                         0);
        assert_int_equal(digest(&t, before, &elems, NULL), 0);
        for (int step = 0; step < STEPS; step++)
            assert_int_equal(step_of(&t, step, 1, 0, &losses[step], NULL), 0);
        assert_true(agree(expected, losses, 2e-6));
        assert_int_equal(digest(&t, after, &elems, NULL), 0);
        assert_int_equal(check_values(&t, before, after, 0), 0);
        assert_int_equal(t.state.gradients_bytes, 3 * 4 * trainee_elems(&t));
        assert_int_equal(t.state.parameters_bytes, 3 * 4 * (trainee_elems(&t) + frozen_elems(&t)));
        assert_int_equal(t.state.optimizer_bytes, 2 * 4 * trainee_elems(&t));
        close_trainee(&t);
    }
}

/* A device whose memory the host cannot read: frozen values are copied, and their copies live for the export alone. */
static void test_a_far_device_trains_alike(void **state)
{
    for (int i = 0; i < 4; i++) {
        dt_dtype dtype = i < 2 ? DT_F32 : DT_BF16;
        const way *w = &ways[i % 2];
        dt_strategy_options options = options_of(w, DT_OPTIMIZER_ADAMW);
        double near_loss, far_loss;
        trainee near, far;

        assert_int_equal(
            open_frozen(&near, w, &options, dtype, patterns[3], ROWS, NULL, 0, 1, NULL), 0);
        assert_int_equal(open_frozen(&far, w, &options, dtype, patterns[3], ROWS, NULL, 0, 1, NULL),
                         0);
        far.state.strategy->teardown(&far.state);
        far.device.host_reads = false;
        assert_int_equal(far.state.strategy->setup(&far.state, 7, NULL), 0);
        assert_int_equal(step_of(&near, 0, 1, 0, &near_loss, NULL), 0);
        assert_int_equal(step_of(&far, 0, 1, 0, &far_loss, NULL), 0);
        assert_true(near_loss == far_loss);
        assert_int_equal(hand_over(&near, &far, NULL), 0);
        assert_int_equal(step_of(&near, 1, 1, 0, &near_loss, NULL), 0);
        assert_int_equal(step_of(&far, 1, 1, 0, &far_loss, NULL), 0);
        assert_true(near_loss == far_loss);
        close_trainee(&near);
        close_trainee(&far);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_train_like_one_process_with_less_memory),
        cmocka_unit_test(test_adapters_train_like_in_one_process_with_less_memory),
        cmocka_unit_test(test_frozen_values_are_exported_and_imported),
        cmocka_unit_test(test_replicas_train_like_one_process),
        cmocka_unit_test(test_a_far_device_trains_alike),
    };

    return cmocka_run_group_tests_name("strategy: frozen parameters", tests, NULL, NULL);
}
