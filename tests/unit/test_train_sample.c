/* Drawing a token from logits, and where a text written piece by piece ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/generate/text.h"

#define V 5

static const float LOGITS[V] = {0.0f, 2.0f, -1.0f, 2.0f, 1.0f};

static int32_t draw(double temperature, int64_t top_k, uint64_t seed, uint32_t index)
{
    dt_sampling how = {.temperature = temperature, .top_k = top_k, .seed = seed};
    float logits[V];

    memcpy(logits, LOGITS, sizeof(logits));
    return dt_sample_token(logits, V, &how, NULL, index);
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
    count(counts, 1000, 5, 1); /* two are equally large: both stay */
    assert_int_equal(counts[1] + counts[3], 1000);
    count(counts, 1000, 50, V);
    assert_true(counts[2] > 0);
    count(counts, 1000, 50, 1000);
    assert_true(counts[2] > 0);
}

static void count_top_p(int *counts, double top_p, double temperature)
{
    memset(counts, 0, V * sizeof(*counts));
    for (int i = 0; i < 1000; i++) {
        dt_sampling how = {.temperature = temperature, .top_p = top_p, .seed = 1};
        float logits[V];

        memcpy(logits, LOGITS, sizeof(logits));
        counts[dt_sample_token(logits, V, &how, NULL, (uint32_t)i)]++;
    }
}

static void test_top_p_keeps_the_fewest_that_add_up_to_it(void **state)
{
    double total = 0, two;
    int counts[V];

    (void)state;
    for (int v = 0; v < V; v++)
        total += exp(LOGITS[v]);
    two = 2 * exp(2) / total;
    count_top_p(counts, two - 0.01, 1);
    assert_int_equal(counts[1] + counts[3], 1000);
    count_top_p(counts, two + 0.01, 1);
    assert_true(counts[4] > 0);
    assert_int_equal(counts[0] + counts[2], 0);
    count_top_p(counts, 1e-9, 1); /* tokens as likely as the best stay */
    assert_true(counts[1] > 300 && counts[3] > 300);
    count_top_p(counts, 1, 5);
    assert_true(counts[2] > 0);
}

static void test_a_penalty_makes_what_was_there_less_likely(void **state)
{
    const bool seen[V] = {false, true, true, false, false};
    dt_sampling how = {.temperature = 0, .penalty = 1.5};
    float logits[V];

    (void)state;
    memcpy(logits, LOGITS, sizeof(logits));
    assert_int_equal(dt_sample_token(logits, V, &how, seen, 0), 3);
    assert_true(fabsf(logits[1] - 2.0f / 1.5f) < 1e-6f && logits[2] == -1.5f && logits[3] == 2.0f);
    how.penalty = 1;
    memcpy(logits, LOGITS, sizeof(logits));
    assert_int_equal(dt_sample_token(logits, V, &how, seen, 0), 1);
}

/* --- stop texts */

/* Writes the pieces that are passed on, each followed by a bar. */
static void write_pieces(dt_strbuf *out, const char *const *pieces, const char *const *stops,
                         size_t stop_count)
{
    const dt_stops all = {stops, stop_count};
    size_t given = 0, until = 0;
    bool stopped = false;
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (; *pieces != NULL && !stopped; pieces++) {
        dt_strbuf_add_str(&text, *pieces);
        stopped = dt_stops_find(&until, &text, given, &all);
        dt_strbuf_add(out, text.data + given, until - given);
        dt_strbuf_add_char(out, '|');
        given = until;
    }
    dt_strbuf_add_str(out, stopped ? "!" : text.data + given);
    dt_strbuf_release(&text);
}

static void check_pieces(const char *const *pieces, const char *const *stops, size_t stop_count,
                         const char *expected)
{
    dt_strbuf out;

    dt_strbuf_init(&out);
    write_pieces(&out, pieces, stops, stop_count);
    assert_string_equal(out.data, expected);
    dt_strbuf_release(&out);
}

static void test_a_text_ends_before_its_first_stop(void **state)
{
    static const char *const stops[] = {"END", "\n\n"};
    static const char *const spread[] = {"a E", "N", "d E", "N", "D b", NULL},
                             *const both[] = {"one\n", "\ntwo END", NULL},
                             *const none[] = {"x", "EN", NULL},
                             *const accent[] = {"caf\xc3", "\xa9 \xe2\x82", "\xac\xff", NULL};

    (void)state;
    check_pieces(spread, stops, 2, "a ||ENd |||!");
    check_pieces(both, stops, 2, "one||!");
    check_pieces(none, stops, 2, "x||EN");
    check_pieces(accent, NULL, 0, "caf|\xc3\xa9 |\xe2\x82\xac\xff|");
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
        cmocka_unit_test(test_top_p_keeps_the_fewest_that_add_up_to_it),
        cmocka_unit_test(test_a_penalty_makes_what_was_there_less_likely),
        cmocka_unit_test(test_a_text_ends_before_its_first_stop),
        cmocka_unit_test(test_a_seed_repeats_and_another_differs),
    };

    return cmocka_run_group_tests_name("train: drawing a token", tests, NULL, NULL);
}
