/* Compares the memory forecast of a recipe with what the model allocates, and that with what the system measures. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "recipes/cost/memory.h"
#include "tests/unit/model_harness.h"

static const struct {
    int64_t layers, heads, embed, vocab, batch, tokens;
    dt_precision_kind precision;
    dt_recompute_kind recompute;
    bool fairseq; /* sinusoidal, untied */
    int64_t ffn;
} cases[] = {
    {4, 4, 128, 65, 12, 64, DT_PRECISION_FP32, DT_RECOMPUTE_NONE, false, 0},
    {4, 4, 128, 65, 12, 64, DT_PRECISION_BF16, DT_RECOMPUTE_NONE, false, 0},
    {2, 3, 36, 61, 3, 13, DT_PRECISION_FP32, DT_RECOMPUTE_NONE, false, 0},
    {12, 12, 768, 50257, 4, 1024, DT_PRECISION_BF16, DT_RECOMPUTE_NONE, false, 0},
    {12, 12, 768, 50257, 4, 1024, DT_PRECISION_FP32, DT_RECOMPUTE_NONE, false, 0},
    {48, 25, 1600, 50257, 1, 1024, DT_PRECISION_BF16, DT_RECOMPUTE_NONE, false, 0},
    {12, 12, 768, 50257, 4, 1024, DT_PRECISION_BF16, DT_RECOMPUTE_SELECTIVE, false, 0},
    {12, 12, 768, 50257, 4, 1024, DT_PRECISION_BF16, DT_RECOMPUTE_FULL, false, 0},
    {48, 25, 1600, 50257, 1, 1024, DT_PRECISION_FP16, DT_RECOMPUTE_SELECTIVE, false, 0},
    {48, 25, 1600, 50257, 1, 1024, DT_PRECISION_FP32, DT_RECOMPUTE_FULL, false, 0},
    {24, 16, 1024, 50257, 2, 512, DT_PRECISION_FP16, DT_RECOMPUTE_FULL, true, 0},
    {24, 16, 1024, 50257, 2, 512, DT_PRECISION_FP32, DT_RECOMPUTE_NONE, true, 0},
    {3, 3, 36, 61, 3, 13, DT_PRECISION_FP32, DT_RECOMPUTE_NONE, true, 0},
    {4, 4, 128, 65, 12, 64, DT_PRECISION_FP32, DT_RECOMPUTE_FULL, true, 0},
    /* a model narrower than queries, keys and values, and a wide one */
    {4, 4, 128, 65, 12, 64, DT_PRECISION_FP32, DT_RECOMPUTE_NONE, false, 200},
    {4, 4, 128, 65, 12, 64, DT_PRECISION_BF16, DT_RECOMPUTE_SELECTIVE, false, 200},
    {4, 4, 128, 65, 12, 64, DT_PRECISION_FP32, DT_RECOMPUTE_FULL, false, 1000},
    {4, 4, 128, 65, 12, 64, DT_PRECISION_FP32, DT_RECOMPUTE_SELECTIVE, false, 1000},
    {12, 12, 768, 50257, 4, 1024, DT_PRECISION_BF16, DT_RECOMPUTE_NONE, false, 2000},
    {12, 12, 768, 50257, 4, 1024, DT_PRECISION_BF16, DT_RECOMPUTE_FULL, false, 6000},
    {12, 12, 768, 50257, 4, 1024, DT_PRECISION_BF16, DT_RECOMPUTE_NOTHING, false, 0},
    {4, 4, 128, 65, 12, 64, DT_PRECISION_FP32, DT_RECOMPUTE_NOTHING, false, 1000},
};
#define CASE_COUNT (sizeof cases / sizeof cases[0])

static dt_model_config config_of(size_t i)
{
    static const dt_dtype types[] = {
        [DT_PRECISION_FP32] = DT_F32, [DT_PRECISION_BF16] = DT_BF16, [DT_PRECISION_FP16] = DT_F16};
    dt_model_config config = {.decoder.layers = cases[i].layers,
                              .decoder.heads = cases[i].heads,
                              .decoder.embed = cases[i].embed,
                              .decoder.vocab = cases[i].vocab,
                              .decoder.vocab_padded = (cases[i].vocab + 127) / 128 * 128,
                              .decoder.context = cases[i].tokens,
                              .batch = cases[i].batch,
                              .tokens = cases[i].tokens,
                              .gpt2.ffn = cases[i].ffn,
                              .gpt2.positions =
                                  cases[i].fairseq ? DT_POSITIONS_SINUSOIDAL : DT_POSITIONS_LEARNED,
                              .decoder.own_lm_head = cases[i].fairseq,
                              .recompute = cases[i].recompute,
                              .dtype = types[cases[i].precision]};

    return config;
}

static dt_memory estimate_of(size_t i)
{
    const dt_memory_ranks one = {.world_size = 1, .replicas = 1};
    dt_recipe recipe = {.ranks = 1};
    dt_memory memory;

    recipe.model.layers = cases[i].layers;
    recipe.model.heads = cases[i].heads;
    recipe.model.embed = cases[i].embed;
    recipe.batch.sequences = cases[i].batch;
    recipe.batch.tokens = cases[i].tokens;
    recipe.precision.kind = cases[i].precision;
    recipe.activation_checkpointing = cases[i].recompute;
    recipe.model.tied = !cases[i].fairseq;
    recipe.model.positions = config_of(i).gpt2.positions;
    recipe.model.ffn = cases[i].ffn;
    dt_memory_estimate(&memory, &recipe, cases[i].vocab, &one);
    return memory;
}

/* The forecast is lower by the rounding of fourteen tensors for each block, and a dozen others, to 64 bytes. */
static void test_the_estimate_of_activations_is_what_a_model_takes(void **state)
{
    for (size_t i = 0; i < CASE_COUNT; i++) {
        dt_model_config config = config_of(i);
        int64_t taken = (int64_t)dt_model_activation_bytes(&config);
        int64_t estimate = estimate_of(i).activations_bytes;

        if (taken > estimate + 64 * (14 * config.decoder.layers + 12) || estimate > taken)
            fail_msg("case %zu: the model takes %lld bytes, the recipe says %lld", i,
                     (long long)taken, (long long)estimate);
    }
}

static void test_the_estimate_of_parameters_is_the_models_table(void **state)
{
    for (size_t i = 0; i < CASE_COUNT; i++) {
        dt_model_config config = config_of(i);
        harness h;

        if (config.decoder.embed > 128) /* opening allocates the memory */
            continue;
        harness_open(&h, &config);
        assert_int_equal(estimate_of(i).parameter_count, dt_model_param_elems(h.model));
        harness_close(&h);
    }
}

#ifdef __SANITIZE_ADDRESS__
/* Freed memory would stay in quarantine, more of it with each op that is called. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=1";
}
#endif

/* Returns the peak memory of a process that runs one pass, in bytes. */
static int64_t peak_of_pass(const dt_model_config *config)
{
    struct rusage usage;
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        harness h;

        harness_open(&h, config);
        harness_init(&h, 5);
        harness_fill_batch(&h, 9);
        harness_pass(&h, &h.batch, 1);
        _exit(0);
    }
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return (int64_t)usage.ru_maxrss * 1024;
}

/* Compares the peak memory of processes that differ only in recomputation. Their difference is
 * rounded to pages and includes the workspace of ops. */
static void test_recomputation_saves_the_forecast_memory(void **state)
{
    static const dt_recompute_kind kinds[] = {DT_RECOMPUTE_SELECTIVE, DT_RECOMPUTE_FULL};
    static const int64_t least[] = {8, 2}; /* fraction of the activations without recomputation */
    dt_model_config config = harness_config();
    int64_t bytes, peak;

    config.decoder.layers = 8;
    config.decoder.heads = 4;
    config.decoder.embed = 128;
    config.decoder.context = config.tokens = 256;
    bytes = (int64_t)dt_model_activation_bytes(&config);
    peak = peak_of_pass(&config);
    for (size_t k = 0; k < 2; k++) {
        int64_t said, seen;

        config.recompute = kinds[k];
        said = bytes - (int64_t)dt_model_activation_bytes(&config);
        seen = peak - peak_of_pass(&config);
        print_message("saves %.1f MB, said %.1f\n", (double)seen / 1e6, (double)said / 1e6);
        assert_true(said > bytes / least[k]);
        assert_true(fabs((double)(seen - said)) < 0.1 * (double)said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* first, since a process that has run OpenMP threads must not fork */
        cmocka_unit_test(test_recomputation_saves_the_forecast_memory),
        cmocka_unit_test(test_the_estimate_of_activations_is_what_a_model_takes),
        cmocka_unit_test(test_the_estimate_of_parameters_is_the_models_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
