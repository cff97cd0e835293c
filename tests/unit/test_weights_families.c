/* Every family of kind llama, with its switches, from a folder saved by transformers
 * (tests/golden/make_families_fixture.py): logits, loss and gradients; recomputation; memory; growing sequences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/architecture/architecture.h"
#include "tests/golden/safetensors.h"
#include "tests/unit/weights_harness.h"

#define FOLDER "tests/golden/families/"

enum { ROWS = WEIGHTS_BATCH * WEIGHTS_TOKENS };

static const char *const families[] = {"stablelm", "olmo3",   "gemma",  "qwen3",
                                       "mistral",  "llama",   "phi3",   "granite",
                                       "olmo2",    "smollm3", "gemma2", "gemma3_text"};
#define FAMILIES (sizeof(families) / sizeof(families[0]))

typedef struct opened {
    dt_arena arena;
    dt_recipe recipe;
    dt_model_config config;
    fixture expect;
    harness h;
} opened;

static const char *path_of(char room[128], size_t family, const char *ending)
{
    snprintf(room, 128, FOLDER "%s%s", families[family], ending);
    return room;
}

static void close_family(opened *o)
{
    harness_close(&o->h);
    fixture_close(&o->expect);
    dt_arena_release(&o->arena);
}

/* Opens the family's model, changed by `change` (may be NULL), with its weights and the batch of its fixture. */
static void open_family(opened *o, size_t family, void (*change)(dt_model_config *config))
{
    dt_weights_files files;
    dt_weights *weights;
    char path[128];

    dt_arena_init(&o->arena, 0);
    path_of(path, family, "");
    o->recipe = weights_recipe(path, &o->arena);
    dt_model_config_make(&o->config, &o->recipe, WEIGHTS_VOCAB);
    o->config.tokens = WEIGHTS_TOKENS;
    if (change != NULL)
        change(&o->config);
    harness_open(&o->h, &o->config);
    weights = weights_open_checked(&files, path, o->h.model, &o->arena);
    weights_fill(&o->h, weights);
    dt_weights_close(weights);
    fixture_open(&o->expect, path_of(path, family, "_expect.safetensors"));
    memcpy(o->h.tokens, fixture_get(&o->expect, "tokens", "I32", ROWS), ROWS * sizeof(int32_t));
    memcpy(o->h.targets, fixture_get(&o->expect, "targets", "I32", ROWS), ROWS * sizeof(int32_t));
}

static void test_logits_are_those_of_transformers(void **state)
{
    char from[128], expect[128];

    for (size_t i = 0; i < FAMILIES; i++)
        weights_expect_logits(path_of(from, i, ""), path_of(expect, i, "_expect.safetensors"));
}

/* Errors are relative to a tensor's own norm, or to a hundredth of that of the largest gradient, if the tensor's is
 * near 0. */
static void check_gradients(opened *o, size_t family)
{
    dt_weights_files files;
    dt_weights *theirs;
    double largest = 0;
    char path[128];

    theirs = weights_open_checked(&files, path_of(path, family, "_grad"), o->h.model, &o->arena);
    for (int turn = 0; turn < 2; turn++)
        for (int p = 0; p < o->h.model->param_count; p++) {
            dt_slice whole = weights_whole(&o->h.model->params[p]);
            float *want = calloc((size_t)whole.elems, sizeof(*want)), *got = harness_grad(&o->h, p);
            double apart = 0, size = 0, root = sqrt((double)whole.elems);

            weights_read_slice(want, theirs, o->h.model, p, &whole);
            for (int64_t k = 0; k < whole.elems; k++) {
                apart += ((double)got[k] - want[k]) * ((double)got[k] - want[k]);
                size += (double)want[k] * want[k];
            }
            if (turn == 0)
                largest = fmax(largest, sqrt(size) / root);
            else if (!(sqrt(apart) <= 1e-5 * (sqrt(size) + 1e-2 * largest * root)))
                fail_msg("%s: the gradient of %s is %.2g of its norm apart", families[family],
                         o->h.model->params[p].name, sqrt(apart / size));
            free(want);
        }
    dt_weights_close(theirs);
}

static void test_loss_and_gradients_are_those_of_transformers(void **state)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        double loss, want;
        opened o;

        open_family(&o, i, NULL);
        want = *(const double *)fixture_get(&o.expect, "loss", "F64", 1);
        harness_zero_grads(&o.h);
        loss = harness_pass(&o.h, &o.h.batch, 1.0 / ROWS) / ROWS;
        if (!(fabs(loss - want) <= 1e-6 * want))
            fail_msg("%s: the loss is %.9g, not %.9g", families[i], loss, want);
        check_gradients(&o, i);
        close_family(&o);
    }
}

static void test_recomputation_changes_no_bit(void **state)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        opened o;

        open_family(&o, i, NULL);
        o.config.batch = 4;
        harness_expect_same_bits(o.config, families[i], NULL);
        harness_expect_hooked_weights(o.config);
        close_family(&o);
    }
}

/* What the engine allocates is the forecast and what its tensors are aligned to, and all of it is used. */
static void test_memory_is_as_forecast(void **state)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        opened o;

        open_family(&o, i, NULL);
        o.config.batch = 64;
        for (int r = 0; r < HARNESS_RECOMPUTE_KINDS; r++) {
            int64_t said, taken;

            o.config.recompute = harness_recompute_kinds[r];
            said = dt_architecture_find(o.config.kind)->activation_bytes(&o.config);
            taken = (int64_t)dt_model_activation_bytes(&o.config);
            if (said > taken || taken > said + 64 * (24 * o.config.decoder.layers + 20))
                fail_msg("%s, recompute %d: %lld bytes are forecast, %lld taken", families[i], r,
                         (long long)said, (long long)taken);
        }
        o.config.batch = WEIGHTS_BATCH;
        harness_expect_full_arena(o.config);
        close_family(&o);
    }
}

static void grow(dt_model_config *config)
{
    config->tokens = WEIGHTS_CONTEXT;
    config->inference = config->incremental = true;
    config->sequences = WEIGHTS_BATCH;
}

static void expect_row(const opened *o, size_t family, const float *got, int64_t row)
{
    const float *want = fixture_get(&o->expect, "logits", "F32", (int64_t)ROWS * WEIGHTS_VOCAB);

    for (int64_t v = 0; v < WEIGHTS_VOCAB; v++) {
        float theirs = want[row * WEIGHTS_VOCAB + v];

        if (!(fabsf(got[v] - theirs) <= 1e-5F * (1 + fabsf(theirs))))
            fail_msg("%s: logit %lld of row %lld is %g, not %g", families[family], (long long)v,
                     (long long)row, (double)got[v], (double)theirs);
    }
}

/* One sequence by three tokens, the other by five, then both by one each, from the cache. The keys of scalings that
 * depend on the length keep the angles that they got, so that they are left out. */
static void test_sequences_grow_to_the_same_logits(void **state)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        static const int64_t first[WEIGHTS_BATCH] = {3, 5};
        float logits[WEIGHTS_BATCH * WEIGHTS_VOCAB];
        int32_t *tokens;
        dt_error err = DT_ERROR_INIT;
        dt_tensor view;
        opened o;

        open_family(&o, i, grow);
        if (o.config.llama.rope_scaling >= DT_ROPE_LONGROPE) {
            close_family(&o);
            continue;
        }
        tokens = malloc(ROWS * sizeof(*tokens));
        memcpy(tokens, fixture_get(&o.expect, "tokens", "I32", ROWS), ROWS * sizeof(*tokens));
        for (int64_t s = 0; s < WEIGHTS_BATCH; s++) {
            memcpy(o.h.tokens, tokens + s * WEIGHTS_TOKENS, (size_t)first[s] * sizeof(*tokens));
            view = dt_tensor_2d(o.h.tokens, DT_I32, 1, first[s]);
            assert_int_equal(dt_model_extend(o.h.model, s, &view, logits, &err), DT_OK);
            expect_row(&o, i, logits, s * WEIGHTS_TOKENS + first[s] - 1);
        }
        for (int64_t step = 0; step < WEIGHTS_TOKENS - first[1]; step++) {
            for (int64_t s = 0; s < WEIGHTS_BATCH; s++)
                o.h.tokens[s] = tokens[s * WEIGHTS_TOKENS + first[s] + step];
            view = dt_tensor_2d(o.h.tokens, DT_I32, WEIGHTS_BATCH, 1);
            assert_int_equal(dt_model_extend_each(o.h.model, &view, logits, &err), DT_OK);
            for (int64_t s = 0; s < WEIGHTS_BATCH; s++)
                expect_row(&o, i, logits + s * WEIGHTS_VOCAB, s * WEIGHTS_TOKENS + first[s] + step);
        }
        free(tokens);
        close_family(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits_are_those_of_transformers),
        cmocka_unit_test(test_loss_and_gradients_are_those_of_transformers),
        cmocka_unit_test(test_recomputation_changes_no_bit),
        cmocka_unit_test(test_memory_is_as_forecast),
        cmocka_unit_test(test_sequences_grow_to_the_same_logits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
