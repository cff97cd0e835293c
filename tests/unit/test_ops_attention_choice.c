/* Chooses an attention kernel: what is measured, what is stored, and that every failure ends
 * with the built-in kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "engine/ops/cuda/tuned.h"

static char folder[64], path[96];

/* One process that meets one shape. */
static struct {
    float own_ms, cudnn_ms;
    dt_status build, measure;
    int built, measured;
    dt_tuned *rival; /* stores the other choice while this process measures */
} now;

static dt_status build(void *context, dt_error *err)
{
    assert_ptr_equal(context, &now);
    now.built++;
    return now.build == DT_OK ? DT_OK : DT_FAIL(err, now.build, "it is not to be had");
}

static bool ask_with(dt_tuned *tuned, size_t version, int64_t t);

static dt_status measure(void *context, float *own_ms, float *cudnn_ms, dt_error *err)
{
    now.measured++;
    *own_ms = now.own_ms;
    *cudnn_ms = now.cudnn_ms;
    if (now.rival != NULL) {
        dt_tuned *rival = now.rival;

        now.rival = NULL;
        now.own_ms = *cudnn_ms;
        now.cudnn_ms = *own_ms;
        (void)ask_with(rival, 92600, 1024);
    }
    return now.measure == DT_OK ? DT_OK : DT_FAIL(err, now.measure, "its results are not ours");
}

static bool forced;

static bool ask_with(dt_tuned *tuned, size_t version, int64_t t)
{
    char kind[64], name[DT_ATTENTION_NAME_MAX];
    dt_attention_question question = {.forced = forced,
                                      .tuned = tuned,
                                      .machine = "card sm90 x132 driver 13000 cublaslt 130000",
                                      .kind = kind,
                                      .name = name,
                                      .own = "ours",
                                      .rival = "cuDNN",
                                      .context = &now,
                                      .build = build,
                                      .measure = measure};

    snprintf(kind, sizeof(kind), "cudnn %zu; attention forward", version);
    snprintf(name, sizeof(name), "16 x %lld x 12 x 64 BF16", (long long)t);
    return dt_attention_choose(&question);
}

/* Simulates a process, which knows only what is in the file. */
static bool ask(float own_ms, float cudnn_ms)
{
    dt_tuned *tuned = dt_tuned_open(path);
    bool way;

    now.built = now.measured = 0;
    now.own_ms = own_ms;
    now.cudnn_ms = cudnn_ms;
    way = ask_with(tuned, 92600, 1024);
    dt_tuned_close(tuned);
    return way;
}

static int start(void **state)
{
    memset(&now, 0, sizeof(now));
    forced = false;
    snprintf(folder, sizeof(folder), "/tmp/dtrun-choice-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/algorithms", folder);
    return 0;
}

static int end(void **state)
{
    unsetenv("DTRUN_ATTENTION");
    return dt_file_remove_tree(folder, NULL) == DT_OK ? 0 : -1;
}

static void test_the_faster_one_is_taken_and_remembered(void **state)
{
    assert_true(ask(0.5f, 0.4f));
    assert_int_equal(now.measured, 1);
    assert_true(ask(0.4f, 0.5f)); /* in another process */
    assert_int_equal(now.measured, 0);
    assert_int_equal(now.built, 1);
}

static void test_the_built_in_kernel_is_kept_unless_cudnn_is_two_percent_faster(void **state)
{
    assert_false(ask(0.500f, 0.495f));
    assert_false(ask(0.5f, 0.1f));
    assert_int_equal(now.built + now.measured, 0); /* it is not built again */
}

static void test_another_shape_and_another_version_are_other_questions(void **state)
{
    dt_tuned *tuned = dt_tuned_open(path);

    assert_false(ask(0.5f, 0.6f));
    now.own_ms = 0.5f;
    now.cudnn_ms = 0.4f;
    assert_true(ask_with(tuned, 92600, 2048));
    assert_true(ask_with(tuned, 92700, 1024));
    assert_false(ask_with(tuned, 92600, 1024));
    dt_tuned_close(tuned);
}

static void test_the_first_rank_decides_for_all(void **state)
{
    dt_tuned *rival = dt_tuned_open(path);

    now.rival = rival;
    assert_false(ask(0.5f, 0.4f)); /* the other process found the opposite */
    assert_int_equal(now.measured, 2);
    dt_tuned_close(rival);
}

static void test_every_failure_ends_with_the_built_in_kernel_and_is_stored(void **state)
{
    now.build = DT_ERR_UNSUPPORTED;
    assert_false(ask(0.5f, 0.1f));
    assert_int_equal(now.measured, 0);
    now.build = DT_OK;
    assert_false(ask(0.5f, 0.1f));
    assert_int_equal(now.built, 0);
}

static void test_lack_of_memory_is_not_stored(void **state)
{
    now.measure = DT_ERR_NOMEM;
    assert_false(ask(0.5f, 0.1f));
    now.measure = DT_OK;
    assert_true(ask(0.5f, 0.1f));
}

static void test_results_that_differ_are_refused(void **state)
{
    now.measure = DT_ERR_UNSUPPORTED;
    assert_false(ask(0.5f, 0.1f));
    forced = true;
    assert_false(ask(0.5f, 0.1f));
}

static void test_a_missing_choice_falls_back_and_stays_stored(void **state)
{
    assert_true(ask(0.5f, 0.4f));
    now.build = DT_ERR_CUDA;
    assert_false(ask(0.5f, 0.4f));
    now.build = DT_OK;
    assert_true(ask(0.5f, 0.4f));
}

static void test_a_requested_choice_is_neither_measured_nor_stored(void **state)
{
    forced = true;
    assert_true(ask(0.4f, 0.5f));
    forced = false;
    assert_false(ask(0.4f, 0.5f));
    forced = true;
    assert_true(ask(0.4f, 0.5f));
}

static void test_the_switch_has_five_words(void **state)
{
    static const struct {
        const char *word;
        dt_attention_wish wish;
    } words[] = {{"own", DT_ATTENTION_OWN},  {"cudnn", DT_ATTENTION_CUDNN},
                 {"mma", DT_ATTENTION_MMA},  {"wgmma", DT_ATTENTION_WGMMA},
                 {"", DT_ATTENTION_FASTEST}, {"fastest", DT_ATTENTION_FASTEST}};
    dt_error err = DT_ERROR_INIT;
    dt_attention_wish read;

    assert_int_equal(dt_attention_wish_read(&read, &err), DT_OK);
    assert_int_equal(read, DT_ATTENTION_FASTEST);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        setenv("DTRUN_ATTENTION", words[i].word, 1);
        assert_int_equal(dt_attention_wish_read(&read, &err), DT_OK);
        assert_int_equal(read, words[i].wish);
    }
    setenv("DTRUN_ATTENTION", "ours", 1);
    assert_int_equal(dt_attention_wish_read(&read, &err), DT_ERR_USAGE);
    assert_non_null(strstr(err.message, "'ours'"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_faster_one_is_taken_and_remembered),
        TEST(test_the_built_in_kernel_is_kept_unless_cudnn_is_two_percent_faster),
        TEST(test_another_shape_and_another_version_are_other_questions),
        TEST(test_the_first_rank_decides_for_all),
        TEST(test_every_failure_ends_with_the_built_in_kernel_and_is_stored),
        TEST(test_lack_of_memory_is_not_stored),
        TEST(test_results_that_differ_are_refused),
        TEST(test_a_missing_choice_falls_back_and_stays_stored),
        TEST(test_a_requested_choice_is_neither_measured_nor_stored),
        TEST(test_the_switch_has_five_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
