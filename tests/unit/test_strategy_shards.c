/* The strategies compared with each other on 1 to 3 ranks: losses, checkpoints, gradients sent in bf16. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/dist/ranks.h"
#include "tests/unit/comm_support.h"
#include "tests/unit/strategy_support.h"

#define STEPS 6

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

static void on_ranks(int least, int most, int (*check)(dt_events *, int, int))
{
    for (int world_size = least; world_size <= most; world_size++) {
        rank_task task = {world_size, check};
        ranks all = {.world_size = world_size, .timeout_seconds = 250, .body = body, .self = &task};

        assert_int_equal(ranks_run(&all), 0);
    }
}

/* The losses of STEPS steps of two micro-steps. */
static int train(double *losses, const dt_strategy *strategy, const dt_strategy_options *options,
                 dt_dtype dtype, dt_events *events, int rank, int world_size)
{
    dt_error err = DT_ERROR_INIT;
    trainee t;

    CHECK(open_trainee(&t, strategy, options, dtype, events, rank, world_size, &err) == DT_OK);
    for (int i = 0; i < STEPS; i++)
        CHECK(train_step(&t, 2, &losses[i], &err) == DT_OK);
    close_trainee(&t);
    return 0;
}

static bool agree(const double *a, const double *b, double relative)
{
    for (int i = 0; i < STEPS; i++)
        if (fabs(a[i] - b[i]) > relative * a[i])
            return false;
    return true;
}

/* Results are equal to the bit however the state is divided. Only the order of summation of
 * gradients, over micro-steps or over ranks first, affects rounding. */
static int check_shardings(dt_events *events, int rank, int world_size)
{
    static const dt_dtype dtypes[] = {DT_F32, DT_BF16};

    for (size_t i = 0; i < 2; i++) {
        dt_strategy_options options = default_options();
        double ddp[STEPS], parts[STEPS], whole[STEPS], losses[STEPS];

        CHECK(!train(ddp, &dt_strategy_ddp, &options, dtypes[i], events, rank, world_size));
        CHECK(!train(parts, &dt_strategy_fsdp, &options, dtypes[i], events, rank, world_size));
        CHECK(agree(ddp, parts, dtypes[i] == DT_F32 ? 1e-6 : 1e-2) && ddp[STEPS - 1] < ddp[0]);
        options.reshard_after_forward = false;
        CHECK(!train(losses, &dt_strategy_fsdp, &options, dtypes[i], events, rank, world_size));
        CHECK(agree(parts, losses, 0));
        options.shard = DT_SHARD_GRADIENTS;
        CHECK(!train(losses, &dt_strategy_fsdp, &options, dtypes[i], events, rank, world_size));
        CHECK(agree(parts, losses, 0));
        options.shard = DT_SHARD_OPTIMIZER;
        CHECK(!train(whole, &dt_strategy_fsdp, &options, dtypes[i], events, rank, world_size));
        CHECK(agree(ddp, whole, dtypes[i] == DT_F32 ? 1e-6 : 1e-2));
        options.shard = DT_SHARD_FULL;
        options.reduce_each_micro_step = false;
        CHECK(!train(losses, &dt_strategy_fsdp, &options, dtypes[i], events, rank, world_size));
        CHECK(agree(whole, losses, 0));
    }
    return 0;
}

static void test_shardings_train_to_the_same_bits(void **state)
{
    on_ranks(1, 3, check_shardings);
}

/* Matrices gathered from the ranks' parts are updated like those that every rank holds. */
static int check_whole_matrices(dt_events *events, int rank, int world_size)
{
    for (int kind = 0; kind < DT_OPTIMIZER_KINDS; kind++) {
        dt_strategy_options options = default_options();
        double ddp[STEPS], losses[STEPS];

        options.optimizer = (dt_optimizer_options){.kind = (dt_optimizer_kind)kind};
        if (!dt_optimizers[kind].whole_matrices)
            continue;
        CHECK(!train(ddp, &dt_strategy_ddp, &options, DT_F32, events, rank, world_size));
        CHECK(ddp[STEPS - 1] < ddp[0]);
        for (int i = 0; i < 4; i++) {
            options.shard = i % 2 == 0 ? DT_SHARD_FULL : DT_SHARD_OPTIMIZER;
            options.reduce_each_micro_step = i < 2;
            CHECK(!train(losses, &dt_strategy_fsdp, &options, DT_F32, events, rank, world_size));
            CHECK(agree(ddp, losses, 1e-5));
        }
    }
    return 0;
}

static void test_matrices_are_stepped_whole_wherever_they_lie(void **state)
{
    on_ranks(1, 3, check_whole_matrices);
}

/* bf16 has 8 bits of precision: gradients have errors of up to 0.4 %, Adam's steps less. */
static int check_bf16_reduction(dt_events *events, int rank, int world_size)
{
    dt_strategy_options options = default_options();
    double exact[STEPS], losses[STEPS];

    CHECK(!train(exact, &dt_strategy_ddp, &options, DT_F32, events, rank, world_size));
    options.reduce_dtype = DT_REDUCE_BF16;
    CHECK(!train(losses, &dt_strategy_ddp, &options, DT_F32, events, rank, world_size));
    CHECK(agree(exact, losses, 5e-3) && !agree(exact, losses, 0));
    for (int each = 0; each <= 1; each++) {
        options.reduce_each_micro_step = each;
        CHECK(!train(losses, &dt_strategy_fsdp, &options, DT_F32, events, rank, world_size));
        CHECK(agree(exact, losses, 5e-3) && !agree(exact, losses, 0));
    }
    return 0;
}

static void test_gradients_sent_in_bf16_train_alike(void **state)
{
    on_ranks(2, 3, check_bf16_reduction);
}

static double chunk_elems(trainee *t, int *bad)
{
    const dt_state_chunk *chunks;
    int64_t elems = 0;
    int count;

    *bad = t->state.strategy->export_state(&t->state, &chunks, &count, NULL) != DT_OK;
    for (int i = 0; i < count; i++) {
        const dt_param *param = &t->model->params[chunks[i].param];

        *bad += chunks[i].slice.start_elems < 0 ||
                chunks[i].slice.start_elems + chunks[i].slice.elems > param->elems ||
                chunks[i].slice.elems < 1;
        for (int s = 0; s < DT_OPTIMIZER_STATES; s++)
            *bad +=
                (chunks[i].state[s] != NULL) !=
                (s < dt_optimizer_states(&t->state.options.optimizer, dt_param_is_matrix(param)));
        elems += chunks[i].slice.elems;
    }
    return (double)elems;
}

/* For every optimizer, sgd with and without momentum: the exported state is complete, and an
 * importing trainee continues equally. */
static int check_hand_over(dt_events *events, int rank, int world_size)
{
    static const dt_strategy *const strategies[] = {&dt_strategy_ddp, &dt_strategy_fsdp};
    enum { KINDS = DT_OPTIMIZER_KINDS + 1 };

    for (int i = 0; i < 2 * KINDS * 2; i++) {
        const dt_strategy *strategy = strategies[i % 2];
        dt_strategy_options options = default_options();
        dt_dtype dtype = i < 2 * KINDS ? DT_F32 : DT_BF16;
        int kind = i / 2 % KINDS;
        dt_optimizer_args args = {.lr = 1e-2, .grad_scale = 1};
        double elems, loss_a, loss_b;
        trainee a, b;
        int bad;

        options.optimizer =
            (dt_optimizer_options){.kind = kind < DT_OPTIMIZER_KINDS ? kind : DT_OPTIMIZER_SGD,
                                   .momentum = kind < DT_OPTIMIZER_KINDS ? 0.9 : 0,
                                   .beta1 = 0.9,
                                   .beta2 = 0.99,
                                   .eps = 1e-8};
        args.options = options.optimizer;
        CHECK(!open_trainee(&a, strategy, &options, dtype, events, rank, world_size, NULL));
        CHECK(!open_trainee(&b, strategy, &options, dtype, events, rank, world_size, NULL));
        CHECK(!train_step_with(&a, 1, args, &loss_a, NULL));
        CHECK(!train_step_with(&a, 1, args, &loss_a, NULL));
        elems = chunk_elems(&a, &bad);
        CHECK(bad == 0);
        CHECK(!a.comm.all_reduce_f64(&a.comm, &elems, 1, NULL));
        CHECK(elems == (double)dt_model_param_elems(a.model));
        CHECK(!hand_over(&a, &b, NULL));
        for (int step = 0; step < 2; step++) {
            CHECK(!train_step_with(&a, 1, args, &loss_a, NULL));
            CHECK(!train_step_with(&b, 1, args, &loss_b, NULL));
            CHECK(loss_a == loss_b);
        }
        close_trainee(&a);
        close_trainee(&b);
    }
    return 0;
}

static void test_an_imported_state_continues_to_the_same_bits(void **state)
{
    on_ranks(1, 3, check_hand_over);
}

/* --- fp16: one rank overflows */

/* Computes gradients of a micro-step whose loss is multiplied by `scale` on this rank; returns the global norm. */
static dt_status scaled_norm(trainee *t, double scale, double *norm)
{
    const dt_strategy *strategy = t->state.strategy;
    int32_t tokens[SEQUENCES * TOKENS] = {0};
    dt_micro_batch batch = {.inputs = {dt_tensor_2d(tokens, DT_I32, SEQUENCES, TOKENS),
                                       dt_tensor_2d(tokens, DT_I32, SEQUENCES, TOKENS)},
                            .samples = SEQUENCES};
    double sum;
    dt_status st = DT_OK;

    DT_TRY(strategy->step_begin(&t->state, 1, NULL));
    DT_TRY(strategy->forward_backward(&t->state, &batch, scale, &sum, NULL));
    DT_TRY(strategy->grads_finish(&t->state, NULL));
    DT_TRY(strategy->grad_norm(&t->state, norm, NULL));
out:
    return st;
}

/* Whichever rank overflows, all ranks see it in the norm and skip the same step, without any other effect. */
static int check_overflow(dt_events *events, int rank, int world_size)
{
    static const dt_shard_kind shards[] = {DT_SHARD_FULL, DT_SHARD_GRADIENTS, DT_SHARD_OPTIMIZER};

    for (int i = 0; i < 2 * 4 * world_size; i++) {
        const dt_strategy *strategy = i % 4 == 3 ? &dt_strategy_ddp : &dt_strategy_fsdp;
        dt_strategy_options options = default_options();
        double norm, loss_a, loss_b;
        trainee a, b;

        options.shard = shards[i % 4 % 3];
        options.reduce_dtype = i / 4 % 2 == 0 ? DT_REDUCE_FP32 : DT_REDUCE_BF16;
        CHECK(!open_trainee(&a, strategy, &options, DT_F16, events, rank, world_size, NULL));
        CHECK(!open_trainee(&b, strategy, &options, DT_F16, events, rank, world_size, NULL));
        CHECK(!scaled_norm(&a, 1, &norm));
        CHECK(isfinite(norm));
        CHECK(!scaled_norm(&a, rank == i / 8 ? 1e7 : 1, &norm));
        CHECK(!isfinite(norm));
        for (int step = 0; step < 2; step++) {
            CHECK(!train_step(&a, 1, &loss_a, NULL));
            CHECK(!train_step(&b, 1, &loss_b, NULL));
            CHECK(loss_a == loss_b);
        }
        close_trainee(&a);
        close_trainee(&b);
    }
    return 0;
}

static void test_an_overflow_of_one_rank_is_met_by_all(void **state)
{
    on_ranks(2, 3, check_overflow);
}

/* --- dp */

static int check_dp_refuses(dt_events *events, int rank, int world_size)
{
    dt_strategy_options options = default_options();
    dt_error err = DT_ERROR_INIT;
    trainee t;

    CHECK(open_trainee(&t, &dt_strategy_dp, &options, DT_F32, events, rank, world_size, &err) ==
          DT_ERR_RECIPE);
    CHECK(strstr(err.message, "use 'strategy: ddp'") != NULL);
    close_trainee(&t);
    return 0;
}

static void test_dp_on_two_processes_names_ddp(void **state)
{
    on_ranks(2, 2, check_dp_refuses);
}

static void test_dp_hands_its_state_over(void **state)
{
    dt_strategy_options options = default_options();
    double loss_a, loss_b;
    trainee a, b;

    options.replicas = 3;
    assert_int_equal(open_trainee(&a, &dt_strategy_dp, &options, DT_BF16, NULL, 0, 1, NULL), 0);
    assert_int_equal(open_trainee(&b, &dt_strategy_dp, &options, DT_BF16, NULL, 0, 1, NULL), 0);
    assert_int_equal(train_step(&a, 2, &loss_a, NULL), 0);
    assert_int_equal(hand_over(&a, &b, NULL), 0);
    assert_int_equal(train_step(&a, 2, &loss_a, NULL), 0);
    assert_int_equal(train_step(&b, 2, &loss_b, NULL), 0);
    assert_true(loss_a == loss_b);
    close_trainee(&a);
    close_trainee(&b);
}

/* --- a device whose memory the host cannot read, simulated by the CPU */

static void test_state_of_a_far_device_goes_through_copies(void **state)
{
    static const dt_strategy *const strategies[] = {&dt_strategy_ddp, &dt_strategy_fsdp};

    for (size_t i = 0; i < 2; i++) {
        dt_strategy_options options = default_options();
        const dt_state_chunk *chunks;
        double near_loss, far_loss;
        trainee near, far;
        float before;
        int count;

        assert_int_equal(open_trainee(&near, strategies[i], &options, DT_F32, NULL, 0, 1, NULL), 0);
        assert_int_equal(open_trainee(&far, strategies[i], &options, DT_F32, NULL, 0, 1, NULL), 0);
        /* sets it up again, starting at the far device's first byte */
        far.state.strategy->teardown(&far.state);
        far.device.host_reads = false;
        assert_int_equal(far.state.strategy->setup(&far.state, 7, NULL), 0);
        assert_int_equal(train_step(&near, 1, &near_loss, NULL), 0);
        assert_int_equal(train_step(&far, 1, &far_loss, NULL), 0);
        assert_true(near_loss == far_loss);

        assert_int_equal(strategies[i]->export_state(&far.state, &chunks, &count, NULL), 0);
        before = chunks[0].value[3];
        assert_int_equal(train_step(&far, 1, &far_loss, NULL), 0);
        assert_true(chunks[0].value[3] == before); /* a copy made before the change */
        assert_int_equal(hand_over(&near, &far, NULL), 0);
        assert_int_equal(train_step(&near, 1, &near_loss, NULL), 0);
        assert_int_equal(train_step(&far, 1, &far_loss, NULL), 0);
        assert_true(near_loss == far_loss);
        close_trainee(&near);
        close_trainee(&far);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shardings_train_to_the_same_bits),
        cmocka_unit_test(test_matrices_are_stepped_whole_wherever_they_lie),
        cmocka_unit_test(test_gradients_sent_in_bf16_train_alike),
        cmocka_unit_test(test_an_imported_state_continues_to_the_same_bits),
        cmocka_unit_test(test_an_overflow_of_one_rank_is_met_by_all),
        cmocka_unit_test(test_dp_on_two_processes_names_ddp),
        cmocka_unit_test(test_dp_hands_its_state_over),
        cmocka_unit_test(test_state_of_a_far_device_goes_through_copies),
    };

    return cmocka_run_group_tests_name("strategy: one against the other", tests, NULL, NULL);
}
