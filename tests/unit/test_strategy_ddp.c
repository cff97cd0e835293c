/* ddp on one rank, with a small real model; tests/dist covers several ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/strategy/strategy.h"

#define B 2
#define T 8

typedef struct fixture {
    dt_device device;
    dt_model *model;
    dt_comm comm;
    dt_strategy_state state;
    int32_t tokens[B * T], targets[B * T];
} fixture;

static void open_fixture_that(fixture *f, dt_dtype dtype, bool loads)
{
    dt_model_config config = {.decoder.layers = 2,
                              .decoder.heads = 2,
                              .decoder.embed = 32,
                              .decoder.vocab = 11,
                              .decoder.vocab_padded = 128,
                              .decoder.context = T,
                              .batch = B,
                              .tokens = T,
                              .dtype = dtype};

    memset(f, 0, sizeof(*f));
    for (int i = 0; i < B * T; i++) {
        f->tokens[i] = i % 11;
        f->targets[i] = (i + 1) % 11;
    }
    assert_int_equal(dt_device_open_cpu(&f->device, 1, NULL), DT_OK);
    assert_int_equal(dt_model_open(&f->model, &config, &f->device, NULL), DT_OK);
    assert_int_equal(dt_comm_open(&f->comm, NULL, "test", dt_group_all(0, 1), 1, NULL), DT_OK);
    f->state.strategy = &dt_strategy_ddp;
    f->state.model = f->model;
    f->state.mesh = dt_mesh_of(0, 1, 1, 1);
    f->state.comm = &f->comm;
    f->state.options = (dt_strategy_options){.bucket_mb = 25, .first_bucket_mb = 1, .replicas = 1};
    f->state.options.loads = loads;
    assert_int_equal(dt_strategy_ddp.setup(&f->state, 7, NULL), DT_OK);
}

static void open_fixture(fixture *f, dt_dtype dtype)
{
    open_fixture_that(f, dtype, false);
}

static void close_fixture(fixture *f)
{
    dt_strategy_ddp.teardown(&f->state);
    dt_strategy_ddp.teardown(&f->state); /* a second call has no effect */
    dt_comm_close(&f->comm);
    dt_model_close(f->model);
    dt_device_close(&f->device);
}

static double step(fixture *f, int64_t number, double lr, double weight_decay)
{
    dt_optimizer_args args = {
        .options = {.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = weight_decay},
        .lr = lr,
        .step = number,
        .grad_scale = 1};
    dt_micro_batch batch = {
        .inputs = {dt_tensor_2d(f->tokens, DT_I32, B, T), dt_tensor_2d(f->targets, DT_I32, B, T)},
        .samples = B};
    double loss, norm;

    assert_int_equal(dt_strategy_ddp.step_begin(&f->state, 1, NULL), DT_OK);
    assert_int_equal(
        dt_strategy_ddp.forward_backward(&f->state, &batch, 1.0 / (B * T), &loss, NULL), DT_OK);
    assert_int_equal(dt_strategy_ddp.grads_finish(&f->state, NULL), DT_OK);
    assert_int_equal(dt_strategy_ddp.grad_norm(&f->state, &norm, NULL), DT_OK);
    assert_true(norm > 0 && isfinite(norm));
    assert_int_equal(dt_strategy_ddp.update(&f->state, &args, NULL), DT_OK);
    return loss / (B * T);
}

static void test_a_rank_holds_as_in_the_table(void **state)
{
    static const struct {
        dt_dtype dtype;
        int64_t bytes;
    } rows[] = {{DT_F32, 16}, {DT_BF16, 18}};

    for (size_t i = 0; i < 2; i++) {
        fixture f;
        int64_t elems = 0;

        open_fixture(&f, rows[i].dtype);
        for (int unit = 0; unit < f.model->unit_count; unit++)
            elems += f.model->units[unit].elems;
        assert_int_equal(f.state.held_bytes, rows[i].bytes * elems);
        assert_int_equal(f.state.gradients_bytes, 4 * elems);
        assert_int_equal(f.state.optimizer_bytes, 8 * elems);
        close_fixture(&f);
    }
}

static void test_steps_bring_the_loss_down(void **state)
{
    static const dt_dtype dtypes[] = {DT_F32, DT_BF16};

    for (size_t i = 0; i < 2; i++) {
        double first, last = 0;
        fixture f;

        open_fixture(&f, dtypes[i]);
        first = step(&f, 1, 1e-2, 0);
        for (int64_t number = 2; number <= 30; number++)
            last = step(&f, number, 1e-2, 0);
        assert_true(fabs(first - log(11)) < 0.1);
        assert_true(last < 0.5 * first);
        assert_int_equal(f.state.sent_bytes, 0);
        close_fixture(&f);
    }
}

/* Drawing start values takes a minute for a large model, and the checkpoint replaces them. */
static void test_first_values_are_not_drawn_where_a_checkpoint_follows(void **state)
{
    const dt_state_chunk *chunks;
    fixture f;
    int count;

    open_fixture_that(&f, DT_F32, true);
    assert_int_equal(dt_strategy_ddp.export_state(&f.state, &chunks, &count, NULL), DT_OK);
    assert_int_equal(count, f.model->param_count);
    for (int i = 0; i < count; i++)
        for (int64_t at = 0; at < chunks[i].slice.elems; at++)
            assert_true(chunks[i].value[at] == 0);
    close_fixture(&f);
}

/* With a learning rate that has an effect only by decay, decayed parameters shrink by 1 - lr *
 * decay; the others move by at most Adam's step. */
static void test_decay_falls_on_matrices_alone(void **state)
{
    const double lr = 1e-6, decay = 1e5; /* lr * decay = 0.1 */
    const dt_state_chunk *chunks;
    float before[2];
    int count, matrix = -1, vector = -1;
    fixture f;

    open_fixture(&f, DT_F32);
    assert_int_equal(dt_strategy_ddp.export_state(&f.state, &chunks, &count, NULL), DT_OK);
    assert_int_equal(count, f.model->param_count);
    for (int i = 0; i < count; i++) {
        const dt_param *param = &f.model->params[i];

        assert_int_equal(chunks[i].param, i);
        assert_int_equal(chunks[i].slice.start_elems, 0);
        assert_int_equal(chunks[i].slice.elems, param->elems);
        if (strcmp(param->name, "h.1.mlp.c_fc.weight") == 0)
            matrix = i;
        if (strcmp(param->name, "h.1.ln_2.weight") == 0)
            vector = i;
    }
    assert_true(matrix >= 0 && vector >= 0);
    before[0] = chunks[matrix].value[5];
    before[1] = chunks[vector].value[5];
    step(&f, 1, lr, decay);
    assert_true(fabs(chunks[matrix].value[5] - 0.9 * before[0]) < 2e-6);
    assert_true(fabs(chunks[vector].value[5] - before[1]) < 2e-6);
    close_fixture(&f);
}

/* An exported and imported state continues to the same bits. */
static void test_an_imported_state_continues_equally(void **state)
{
    static const dt_dtype dtypes[] = {DT_F32, DT_BF16};

    for (size_t i = 0; i < 2; i++) {
        const dt_state_chunk *from, *to;
        int count, to_count;
        fixture a, b;

        open_fixture(&a, dtypes[i]);
        open_fixture(&b, dtypes[i]);
        step(&a, 1, 1e-2, 0.1);
        step(&a, 2, 1e-2, 0.1);
        assert_int_equal(dt_strategy_ddp.export_state(&a.state, &from, &count, NULL), DT_OK);
        assert_int_equal(dt_strategy_ddp.import_state(&b.state, &to, &to_count, NULL), DT_OK);
        assert_int_equal(count, to_count);
        for (int c = 0; c < count; c++) {
            size_t bytes = (size_t)from[c].slice.elems * sizeof(float);

            memcpy(to[c].value, from[c].value, bytes);
            for (int s = 0; s < DT_OPTIMIZER_STATES; s++)
                memcpy(to[c].state[s], from[c].state[s], bytes);
        }
        assert_int_equal(dt_strategy_ddp.import_finish(&b.state, NULL), DT_OK);
        for (int64_t number = 3; number <= 5; number++)
            assert_true(step(&a, number, 1e-2, 0.1) == step(&b, number, 1e-2, 0.1));
        close_fixture(&a);
        close_fixture(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rank_holds_as_in_the_table),
        cmocka_unit_test(test_steps_bring_the_loss_down),
        cmocka_unit_test(test_first_values_are_not_drawn_where_a_checkpoint_follows),
        cmocka_unit_test(test_decay_falls_on_matrices_alone),
        cmocka_unit_test(test_an_imported_state_continues_equally),
    };

    return cmocka_run_group_tests_name("strategy: ddp on one rank", tests, NULL, NULL);
}
