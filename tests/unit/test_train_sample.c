/* Drawing a token from logits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/generate/sample.h"

#include "base/banned.h"

#define V 5

static const float LOGITS[V] = {0.0f, 2.0f, -1.0f, 2.0f, 1.0f};

static int32_t draw(double temperature, int64_t top_k, uint64_t seed, uint32_t index)
{
    dt_sampling how = {.temperature = temperature, .top_k = top_k, .seed = seed};
    float logits[V];

    memcpy(logits, LOGITS, sizeof(logits));
    return dt_sample_token(logits, V, &how, index);
}

static void count(int *counts, int draws, double temperature, int64_t top_k)
{
    memset(counts, 0, V * sizeof(*counts));
    for (int i = 0; i < draws; i++)
        counts[draw(temperature, top_k, 1, (uint32_t)i)]++;
}

static void test_temperature_0_takes_the_first_of_the_largest(void **state)
{
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(draw(0, 0, i, i), 1);
}

static void test_draws_follow_the_softmax(void **state)
{
    const int draws = 20000;
    double total = 0;
    int counts[V];

    count(counts, draws, 1, 0);
    for (int v = 0; v < V; v++)
        total += exp(LOGITS[v]);
    for (int v = 0; v < V; v++) {
        double p = exp(LOGITS[v]) / total;

        /* five standard deviations */
        assert_true(fabs(counts[v] - draws * p) < 5 * sqrt(draws * p * (1 - p)));
    }
}

static void test_a_low_temperature_keeps_to_the_likeliest(void **state)
{
    int counts[V];

    count(counts, 1000, 0.05, 0);
    assert_int_equal(counts[1] + counts[3], 1000);
    assert_true(counts[1] > 300 && counts[3] > 300);
}

static void test_top_k_leaves_the_others_out(void **state)
{
    int counts[V];

    count(counts, 1000, 5, 3);
    assert_int_equal(counts[0] + counts[2], 0);
    assert_true(counts[1] > 0 && counts[3] > 0 && counts[4] > 0);
    count(counts, 1000, 5, 1); /* two are the largest: both stay */
    assert_int_equal(counts[1] + counts[3], 1000);
    count(counts, 1000, 50, V);
    assert_true(counts[2] > 0);
    count(counts, 1000, 50, 1000);
    assert_true(counts[2] > 0);
}

static void test_a_seed_repeats_and_another_differs(void **state)
{
    int differ = 0;

    for (uint32_t i = 0; i < 200; i++) {
        assert_int_equal(draw(1, 0, 7, i), draw(1, 0, 7, i));
        differ += draw(1, 0, 7, i) != draw(1, 0, 8, i);
    }
    assert_true(differ > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_temperature_0_takes_the_first_of_the_largest),
        cmocka_unit_test(test_draws_follow_the_softmax),
        cmocka_unit_test(test_a_low_temperature_keeps_to_the_likeliest),
        cmocka_unit_test(test_top_k_leaves_the_others_out),
        cmocka_unit_test(test_a_seed_repeats_and_another_differs),
    };

    return cmocka_run_group_tests_name("train: drawing a token", tests, NULL, NULL);
}
