/* Steps of the optimizers compared with those of other programs for the same gradients
 * (tests/golden/make_optimizer_fixture.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/optim/optimizer.h"
#include "tests/golden/safetensors.h"

static fixture golden;
static dt_device device;

typedef struct matrix {
    const char *name;
    int64_t rows, columns;
} matrix;

static const matrix matrices[] = {{"wide", 12, 40}, {"tall", 56, 24}, {"square", 33, 33}};

#define MATRIX_COUNT (sizeof(matrices) / sizeof(matrices[0]))

static const float *tensor(const char *what, const matrix *of, const char *end)
{
    char name[64];

    snprintf(name, sizeof(name), "%s.%s%s", what, of->name, end);
    return fixture_get(&golden, name, "F32", of->rows * of->columns);
}

static float *copy_of(const float *from, int64_t elems)
{
    float *out = calloc((size_t)elems, sizeof(*out));

    assert_non_null(out);
    if (from != NULL)
        memcpy(out, from, (size_t)elems * sizeof(*out));
    return out;
}

/* Returns the largest error of an element, relative to the root mean square of the expected values. */
static double error_of(const float *got, const float *want, int64_t elems)
{
    double worst = 0, squares = 0;

    for (int64_t i = 0; i < elems; i++) {
        worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
        squares += (double)want[i] * (double)want[i];
    }
    return worst / sqrt(squares / (double)elems);
}

static dt_optimizer_args args_of(dt_optimizer_options options)
{
    options.lr = fixture_number(&golden, "lr");
    options.weight_decay = fixture_number(&golden, "decay");
    options.momentum = fixture_number(&golden, "momentum");
    options.beta1 = fixture_number(&golden, "beta1");
    options.beta2 = fixture_number(&golden, "beta2");
    return (dt_optimizer_args){.options = options, .lr = options.lr, .grad_scale = 1};
}

/* Runs one whole-matrix step. */
static dt_status step_matrix(const dt_optimizer *optimizer, const matrix *of,
                             const dt_optimizer_args *args, dt_dtype dtype, dt_optimizer_part *part)
{
    const dt_optimizer_matrices *way = optimizer->matrices;
    dt_optimizer_factors factors;
    dt_tensor whole = dt_tensor_2d(part->grad.data, DT_F32, of->rows, of->columns);
    void *work;
    dt_status st = DT_OK;

    if (way == NULL) {
        optimizer->factors(&factors, args);
        return optimizer->step(&device, part, &factors, NULL);
    }
    way->factors(&factors, args);
    work = aligned_alloc(64, (size_t)dt_newton_schulz.work_bytes(of->rows, of->columns, dtype));
    DT_TRY(way->direct(&device, part, &factors, NULL));
    DT_TRY(way->shape(&device, &args->options, &whole, dtype, work, NULL));
    DT_TRY(way->apply(&device, part, &factors, NULL));
out:
    free(work);
    return st;
}

/* Compares parameter and momentum of one matrix through all steps. */
static void expect_steps(const char *what, const matrix *of, dt_optimizer_options options,
                         dt_dtype dtype, double bound)
{
    dt_optimizer_args args = args_of(options);
    int64_t elems = of->rows * of->columns;
    int64_t steps = (int64_t)fixture_number(&golden, "steps");
    float *param = copy_of(tensor("start", of, ""), elems), *m = copy_of(NULL, elems);
    double error;

    for (args.step = 1; args.step <= steps; args.step++) {
        char end[16];
        float *grad;
        dt_optimizer_part part;

        snprintf(end, sizeof(end), ".%d", (int)args.step - 1);
        grad = copy_of(tensor("grad", of, end), elems);
        part = (dt_optimizer_part){.param = dt_tensor_1d(param, DT_F32, elems),
                                   .grad = dt_tensor_1d(grad, DT_F32, elems),
                                   .state = {dt_tensor_1d(m, DT_F32, elems)},
                                   .states = 1};
        assert_int_equal(step_matrix(dt_optimizer_of(options.kind), of, &args, dtype, &part),
                         DT_OK);
        free(grad);
    }
    error = error_of(param, tensor(what, of, ""), elems);
    print_message("%s of %s: %.2g\n", what, of->name, error);
    assert_true(error <= bound);
    assert_true(error_of(m, tensor(what, of, ".m"), elems) <= 1e-6);
    free(param);
    free(m);
}

/* Signs are exact; a step is one product and two sums in fp32. */
static void test_lion_steps_as_another_program_does(void **state)
{
    for (size_t i = 0; i < MATRIX_COUNT; i++)
        expect_steps("lion", &matrices[i], (dt_optimizer_options){.kind = DT_OPTIMIZER_LION},
                     DT_F32, 1e-6);
}

/* Fifteen products of up to 56 terms in fp32, one after the other. */
static void test_muon_in_fp32_steps_as_pytorch_held_to_it(void **state)
{
    const dt_optimizer_options options = {.kind = DT_OPTIMIZER_MUON, .nesterov = true};
    const dt_optimizer_options rms = {.kind = DT_OPTIMIZER_MUON,
                                      .adjust_lr = DT_ADJUST_LR_MATCH_RMS_ADAMW};

    for (size_t i = 0; i < MATRIX_COUNT; i++) {
        expect_steps("muon_fp32", &matrices[i], options, DT_F32, 1e-5);
        expect_steps("muon_rms", &matrices[i], rms, DT_F32, 1e-5);
    }
}

/* bf16 has 8 bits and rounds at other places: a step has an error of about 1 % of its size in both programs. */
static void test_muon_in_bf16_steps_as_pytorch(void **state)
{
    const dt_optimizer_options options = {.kind = DT_OPTIMIZER_MUON, .nesterov = true};

    for (size_t i = 0; i < MATRIX_COUNT; i++)
        expect_steps("muon", &matrices[i], options, DT_BF16, 2e-2);
}

static int open_all(void **state)
{
    fixture_open(&golden, "tests/golden/optimizer_steps.safetensors");
    return dt_device_open_cpu(&device, 2, NULL) != DT_OK;
}

static int close_all(void **state)
{
    dt_device_close(&device);
    fixture_close(&golden);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lion_steps_as_another_program_does),
        cmocka_unit_test(test_muon_in_fp32_steps_as_pytorch_held_to_it),
        cmocka_unit_test(test_muon_in_bf16_steps_as_pytorch),
    };

    return cmocka_run_group_tests_name("optimizers as others step", tests, open_all, close_all);
}
