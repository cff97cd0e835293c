/* The MLP against PyTorch: tests/golden/make_mlp_fixture.py computed the same models in double
 * precision, from the same fp32 start values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/kind.h"
#include "tests/golden/safetensors.h"
#include "tests/unit/model_harness.h"

/* The bounds of test_model_golden.c, with their reasons there. Without relu in bf16: a sum
 * rounded to the other side of 0 adds or removes a whole row of a gradient. */
typedef struct mlp_case {
    const char *name; /* of tests/golden/mlp_NAME_*.safetensors */
    dt_activation_kind activation;
    dt_loss_kind loss;
    dt_dtype dtype;
    dt_recompute_kind recompute;
    double loss_bound, grad_bound;
} mlp_case;

#define FP32 DT_F32, DT_RECOMPUTE_NONE, 1e-5, 1e-4
#define FULL DT_F32, DT_RECOMPUTE_FULL, 1e-5, 1e-4
#define BF16 DT_BF16, DT_RECOMPUTE_NONE, 1e-2, 3e-2

static const mlp_case cases[] = {
    {"relu", DT_ACTIVATION_RELU, DT_LOSS_CROSS_ENTROPY, FP32},
    {"tanh", DT_ACTIVATION_TANH, DT_LOSS_CROSS_ENTROPY, FP32},
    {"gelu", DT_ACTIVATION_GELU, DT_LOSS_SQUARED_ERROR, FP32},
    {"tanh", DT_ACTIVATION_TANH, DT_LOSS_CROSS_ENTROPY, FULL},
    {"tanh", DT_ACTIVATION_TANH, DT_LOSS_CROSS_ENTROPY, BF16},
    {"gelu", DT_ACTIVATION_GELU, DT_LOSS_SQUARED_ERROR, BF16},
};
#define CASES (sizeof cases / sizeof cases[0])

typedef struct golden {
    fixture start, expect;
    harness h;
    int64_t steps, batch, inputs, outputs;
    bool classes;
} golden;

static void open_golden(golden *g, const mlp_case *which)
{
    dt_model_config config = {.kind = DT_MODEL_MLP,
                              .tokens = 1,
                              .dtype = which->dtype,
                              .recompute = which->recompute,
                              .mlp.activation = which->activation,
                              .mlp.loss = which->loss};
    char path[96];

    memset(g, 0, sizeof *g);
    snprintf(path, sizeof path, "tests/golden/mlp_%s_start.safetensors", which->name);
    fixture_open(&g->start, path);
    snprintf(path, sizeof path, "tests/golden/mlp_%s_expect.safetensors", which->name);
    fixture_open(&g->expect, path);
    config.mlp.layers = (int64_t)fixture_number(&g->start, "layers");
    config.mlp.width = (int64_t)fixture_number(&g->start, "width");
    config.mlp.inputs = g->inputs = (int64_t)fixture_number(&g->start, "inputs");
    config.mlp.outputs = g->outputs = (int64_t)fixture_number(&g->start, "outputs");
    config.batch = g->batch = (int64_t)fixture_number(&g->start, "batch");
    g->steps = (int64_t)fixture_number(&g->start, "steps");
    g->classes = which->loss == DT_LOSS_CROSS_ENTROPY;
    harness_open(&g->h, &config);
    for (int p = 0; p < g->h.model->param_count; p++) {
        const dt_param *param = &g->h.model->params[p];

        memcpy(harness_value(&g->h, p), fixture_get(&g->start, param->name, "F32", param->elems),
               (size_t)param->elems * sizeof(float));
    }
    harness_values_changed(&g->h);
}

static void close_golden(golden *g)
{
    harness_close(&g->h);
    fixture_close(&g->start);
    fixture_close(&g->expect);
}

/* Returns the step's batch; *counted: the number of targets that count. */
static dt_batch batch_of(const golden *g, int64_t step, int64_t *counted)
{
    int64_t width = g->classes ? 1 : g->outputs;
    const void *rows = fixture_get(&g->start, "rows", "F32", g->steps * g->batch * g->inputs);
    const void *targets =
        fixture_get(&g->start, "targets", g->classes ? "I32" : "F32", g->steps * g->batch * width);
    dt_batch batch = {0};

    batch.inputs[DT_MLP_ROWS] = dt_tensor_2d((float *)(uintptr_t)rows + step * g->batch * g->inputs,
                                             DT_F32, g->batch, g->inputs);
    batch.inputs[DT_MLP_TARGETS] =
        dt_tensor_2d((float *)(uintptr_t)targets + step * g->batch * width,
                     g->classes ? DT_I32 : DT_F32, g->batch, width);
    *counted = 0;
    for (int64_t i = 0; i < g->batch * width; i++)
        *counted += !g->classes || ((const int32_t *)batch.inputs[DT_MLP_TARGETS].data)[i] >= 0;
    return batch;
}

static double pass(golden *g, int64_t step)
{
    int64_t counted;
    dt_batch batch = batch_of(g, step, &counted);

    harness_zero_grads(&g->h);
    return harness_pass(&g->h, &batch, 1.0 / (double)counted) / (double)counted;
}

static void expect_close(const char *what, double error, double bound)
{
    if (!(error <= bound))
        fail_msg("%s: relative error %.3g is over %.3g", what, error, bound);
}

static void test_loss_and_every_gradient_are_pytorchs(void **state)
{
    for (size_t i = 0; i < CASES; i++) {
        golden g;
        double loss;

        open_golden(&g, &cases[i]);
        loss = *(const double *)fixture_get(&g.expect, "loss", "F64", 1);
        expect_close(cases[i].name, fabs(pass(&g, 0) - loss) / loss, cases[i].loss_bound);
        for (int p = 0; p < g.h.model->param_count; p++) {
            const dt_param *param = &g.h.model->params[p];
            char name[64];

            snprintf(name, sizeof name, "grad.%s", param->name);
            expect_close(name,
                         relative_norm(harness_grad(&g.h, p),
                                       fixture_get(&g.expect, name, "F32", param->elems),
                                       param->elems),
                         cases[i].grad_bound);
        }
        close_golden(&g);
    }
}

static void test_twenty_losses_of_gradient_descent_are_pytorchs(void **state)
{
    for (size_t i = 0; i < CASES; i++) {
        golden g;
        const double *losses;
        float rate;

        open_golden(&g, &cases[i]);
        losses = fixture_get(&g.expect, "losses", "F64", g.steps);
        rate = (float)fixture_number(&g.start, "lr");
        for (int64_t step = 0; step < g.steps; step++) {
            expect_close(cases[i].name, fabs(pass(&g, step) - losses[step]) / losses[step],
                         cases[i].loss_bound);
            for (int p = 0; p < g.h.model->param_count; p++)
                for (int64_t k = 0; k < g.h.model->params[p].elems; k++)
                    harness_value(&g.h, p)[k] -= rate * harness_grad(&g.h, p)[k];
            harness_values_changed(&g.h);
        }
        close_golden(&g);
    }
}

static void test_an_evaluation_gives_the_loss_of_a_pass_and_counts_its_targets(void **state)
{
    for (size_t i = 0; i < 3; i++) {
        int64_t counted;
        double evaluated = 0;
        dt_error err = DT_ERROR_INIT;
        dt_batch batch;
        double loss;
        golden g;

        open_golden(&g, &cases[i]);
        batch = batch_of(&g, 0, &counted);
        assert_int_equal(dt_model_evaluate(g.h.model, &batch, &loss, &evaluated, &err), DT_OK);
        assert_int_equal(evaluated, counted);
        expect_close("evaluation", fabs(loss / (double)counted - pass(&g, 0)) / loss, 1e-6);
        close_golden(&g);
    }
}

/* Compares the bytes of `dtrun plan` with the allocated ones: at most 5 % more, or less by the
 * rounding of two tensors for each layer, and six others, to 64 bytes. */
static void test_the_description_is_what_a_model_takes(void **state)
{
    for (int i = 0; i < 24; i++) {
        dt_model_config config = {
            .kind = DT_MODEL_MLP,
            .batch = i % 2 ? 512 : 33,
            .tokens = 1,
            .dtype = i % 3 ? DT_BF16 : DT_F32,
            .recompute = i % 4 < 2 ? DT_RECOMPUTE_NONE : DT_RECOMPUTE_FULL,
            .mlp = {.layers = 1 + i, .width = 64 + 7 * i, .inputs = 13 + i, .outputs = 1 + i % 5}};
        int64_t said = dt_architecture_find(DT_MODEL_MLP)->activation_bytes(&config);
        int64_t taken = (int64_t)dt_model_activation_bytes(&config);

        if (taken > said + 64 * (2 * config.mlp.layers + 6) || (double)said > 1.05 * (double)taken)
            fail_msg("case %d: the model takes %lld bytes, the description says %lld", i,
                     (long long)taken, (long long)said);
    }
}

static void test_a_model_of_rows_cannot_generate_text(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_model_text text;
    golden g;

    open_golden(&g, &cases[0]);
    assert_int_equal(dt_model_text_of(&text, g.h.model, &err), DT_ERR_UNSUPPORTED);
    assert_string_equal(err.message, "a model of kind 'mlp' does not generate text");
    dt_error_clear(&err);
    close_golden(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss_and_every_gradient_are_pytorchs),
        cmocka_unit_test(test_twenty_losses_of_gradient_descent_are_pytorchs),
        cmocka_unit_test(test_an_evaluation_gives_the_loss_of_a_pass_and_counts_its_targets),
        cmocka_unit_test(test_the_description_is_what_a_model_takes),
        cmocka_unit_test(test_a_model_of_rows_cannot_generate_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
