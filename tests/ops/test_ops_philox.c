/* Philox4x32-10 compared with the values published with Random123 (Salmon et al. 2011). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/philox.h"

static const struct {
    uint32_t counter[4], key[2], answer[4];
} known[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}},
    {{0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu},
     {0xffffffffu, 0xffffffffu},
     {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}},
    {{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
     {0xa4093822u, 0x299f31d0u},
     {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}},
};

/* The counter's words are made of the key's fields (philox.h): with the fields, any counter can be
 * requested. */
static dt_philox_block draw_raw(const uint32_t *counter, const uint32_t *key_words)
{
    const dt_philox_key key = {.seed = (uint64_t)key_words[1] << 32 | key_words[0],
                               .step = counter[2],
                               .micro_step = counter[3] & 0xffffu,
                               .data_rank = counter[3] >> 16,
                               .layer = counter[1] >> 4 & 0xfffu,
                               .op = counter[1] & 0xfu};

    return dt_philox_draw(&key, (uint64_t)(counter[1] >> 16) << 32 | counter[0]);
}

static void test_philox_gives_the_published_answers(void **state)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        dt_philox_block got = draw_raw(known[i].counter, known[i].key);

        for (int w = 0; w < 4; w++)
            assert_int_equal(got.word[w], known[i].answer[w]);
    }
}

static void test_philox_streams_differ_in_every_field_of_the_key(void **state)
{
    const dt_philox_key base = {.seed = 1};
    const dt_philox_key others[] = {{.seed = 2},
                                    {.seed = 1, .step = 1},
                                    {.seed = 1, .micro_step = 1},
                                    {.seed = 1, .data_rank = 1},
                                    {.seed = 1, .layer = 1},
                                    {.seed = 1, .op = 1},
                                    {.seed = (uint64_t)1 << 32 | 1}};
    uint32_t first = dt_philox_draw(&base, 0).word[0];

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_not_equal(dt_philox_draw(&others[i], 0).word[0], first);
    assert_int_not_equal(dt_philox_draw(&base, 1).word[0], first);
    assert_int_not_equal(dt_philox_draw(&base, (uint64_t)1 << 32).word[0], first);
}

static void test_philox_uniform_stays_below_one(void **state)
{
    assert_true(dt_philox_uniform(0) == 0.0f);
    assert_true(dt_philox_uniform(0xffffffffu) < 1.0f);
    assert_true(dt_philox_uniform(0x80000000u) == 0.5f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox_gives_the_published_answers),
        cmocka_unit_test(test_philox_streams_differ_in_every_field_of_the_key),
        cmocka_unit_test(test_philox_uniform_stays_below_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
