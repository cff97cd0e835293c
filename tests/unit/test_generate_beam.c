/* Beam search over a chain of words, compared with trying all sequences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/search/search.h"

enum { PAD, END, A, B, C, VOCAB };

/* Logits of the next word after a word, drawn from a seed. The chain records the last word of
 * every version itself, so that a wrong parent is noticed. */
typedef struct chain {
    float after[VOCAB][VOCAB];
    int64_t calls;
    int32_t last[16];
    int64_t versions;
} chain;

static chain chain_of(uint32_t seed)
{
    chain c = {0};

    for (int i = 0; i < VOCAB; i++)
        for (int j = 0; j < VOCAB; j++) {
            seed = seed * 1664525u + 1013904223u;
            c.after[i][j] = (float)(seed >> 16) / 16384.0f;
        }
    return c;
}

static dt_status next(void *self, const int32_t *newest, const int32_t *parents, int64_t versions,
                      float *logits, dt_error *err)
{
    chain *c = self;

    assert_true(versions <= 16 && (parents == NULL) == (c->calls == 0));
    for (int64_t k = 0; k < versions; k++) {
        assert_true(parents == NULL || (parents[k] >= 0 && parents[k] < c->versions));
        memcpy(logits + k * VOCAB, c->after[newest[k]], sizeof c->after[0]);
    }
    c->versions = versions;
    c->calls++;
    return DT_OK;
}

static double chance(const chain *c, int32_t from, int32_t to)
{
    double sum = 0;

    for (int v = 0; v < VOCAB; v++)
        sum += exp((double)c->after[from][v]);
    return (double)c->after[from][to] - log(sum);
}

static double score_of(const chain *c, const int32_t *words, int64_t count, double penalty)
{
    double sum = chance(c, count > 0 ? words[count - 1] : END, END);

    for (int64_t i = 0; i < count; i++)
        sum += chance(c, i == 0 ? END : words[i - 1], words[i]);
    return sum / pow((double)(count + 1), penalty);
}

/* Returns the best score of all sequences of one word to most - 1 words. */
static double best_of_all(const chain *c, int64_t most, double penalty)
{
    double best = -INFINITY;

    for (int64_t count = 1; count < most; count++) {
        int64_t sequences = (int64_t)llround(pow(3, (double)count));

        for (int64_t i = 0; i < sequences; i++) {
            int32_t words[8];
            int64_t rest = i;

            for (int64_t k = 0; k < count; k++, rest /= 3)
                words[k] = (int32_t)(A + rest % 3);
            best = fmax(best, score_of(c, words, count, penalty));
        }
    }
    return best;
}

static dt_beam_result find(chain *c, int64_t beams, int64_t most, double penalty)
{
    dt_beam_options options = {.beams = beams,
                               .vocab = VOCAB,
                               .most = most,
                               .length_penalty = penalty,
                               .end = END,
                               .pad = PAD};
    dt_error err = DT_ERROR_INIT;
    dt_beam_result result;

    c->calls = 0;
    assert_int_equal(dt_beam_search(&result, &options, next, c, &err), DT_OK);
    assert_true(fabs(score_of(c, result.tokens, result.count, penalty) - result.score) < 1e-6);
    return result;
}

static void test_one_beam_is_greedy(void **state)
{
    for (uint32_t seed = 1; seed <= 200; seed++) {
        chain c = chain_of(seed);
        dt_beam_result found = find(&c, 1, 6, 1);
        int32_t at = END;
        int64_t count = 0;

        for (; count < 5; count++) {
            int32_t best = count == 0 ? A : END;

            for (int32_t v = A; v <= C; v++)
                if (c.after[at][v] > c.after[at][best])
                    best = v;
            if (best == END)
                break;
            assert_true(count < found.count);
            assert_int_equal(found.tokens[count], best);
            at = best;
        }
        assert_int_equal(found.count, count);
        free(found.tokens);
    }
}

/* More beams than sequences: none is missed. */
static void test_wide_beams_find_the_likeliest(void **state)
{
    int64_t better = 0;

    for (uint32_t seed = 1; seed <= 200; seed++) {
        chain c = chain_of(seed);
        dt_beam_result wide = find(&c, 16, 3, 0), one = find(&c, 1, 3, 0);

        assert_true(fabs(wide.score - best_of_all(&c, 3, 0)) < 1e-6);
        assert_true(one.score <= wide.score + 1e-9);
        better += wide.score > one.score + 1e-9;
        free(wide.tokens);
        free(one.tokens);
    }
    assert_true(better > 20);
}

static void test_the_penalty_favours_long_ones(void **state)
{
    int64_t with = 0, without = 0;

    for (uint32_t seed = 1; seed <= 200; seed++) {
        chain c = chain_of(seed);
        dt_beam_result none = find(&c, 4, 7, 0), strong = find(&c, 4, 7, 2);

        without += none.count;
        with += strong.count;
        free(none.tokens);
        free(strong.tokens);
    }
    assert_true(with > without);
}

static void test_past_the_end_all_have_the_maximum_length(void **state)
{
    for (uint32_t seed = 1; seed <= 200; seed++) {
        chain c = chain_of(seed);
        dt_beam_options options = {.beams = 4,
                                   .vocab = VOCAB,
                                   .most = 7,
                                   .length_penalty = 1,
                                   .end = END,
                                   .pad = PAD,
                                   .past_end = true};
        dt_error err = DT_ERROR_INIT;
        dt_beam_result found;

        assert_int_equal(dt_beam_search(&found, &options, next, &c, &err), DT_OK);
        assert_int_equal(found.count, 6);
        for (int64_t i = 0; i < found.count; i++)
            assert_true(found.tokens[i] != END);
        free(found.tokens);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_beam_is_greedy),
        cmocka_unit_test(test_wide_beams_find_the_likeliest),
        cmocka_unit_test(test_the_penalty_favours_long_ones),
        cmocka_unit_test(test_past_the_end_all_have_the_maximum_length),
    };

    return cmocka_run_group_tests_name("generate: beam", tests, NULL, NULL);
}
