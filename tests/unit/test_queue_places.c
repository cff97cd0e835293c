/* Which GPUs and processors of which machines a run of the queue, or a point of a sweep, gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runner/queue/order.h"

enum { MACHINES_MOST = 2, NEEDS_MOST = 2 };

/* One run that waits, and what is used already. */
typedef struct place {
    const char *about;
    dt_order_machine machines[MACHINES_MOST];
    uint64_t used[MACHINES_MOST];
    int64_t used_cores[MACHINES_MOST];
    dt_order_need needs[NEEDS_MOST];
    int64_t need_count, wanted;
    dt_order_verdict verdict;
    int64_t machine[NEEDS_MOST]; /* of each part; -1: no more parts */
    uint64_t gpus[NEEDS_MOST];
} place;

static const place places[] = {
    {.about = "the lowest GPUs in a row",
     .machines = {{.name = "a", .gpus = 8}},
     .used = {0x03},
     .needs = {{.gpus = 2}},
     .need_count = 1,
     .verdict = DT_ORDER_START,
     .machine = {0, -1},
     .gpus = {0x0c}},
    {.about = "a gap that is too small is left",
     .machines = {{.name = "a", .gpus = 4}},
     .used = {0x02},
     .needs = {{.gpus = 2}},
     .need_count = 1,
     .verdict = DT_ORDER_START,
     .machine = {0, -1},
     .gpus = {0x0c}},
    {.about = "GPUs before the first that may be had are left",
     .machines = {{.name = "a", .gpus = 4}},
     .needs = {{.gpus = 1, .from_gpu = 2}},
     .need_count = 1,
     .verdict = DT_ORDER_START,
     .machine = {0, -1},
     .gpus = {0x04}},
    {.about = "no row is free",
     .machines = {{.name = "a", .gpus = 4}},
     .used = {0x06},
     .needs = {{.gpus = 2}},
     .need_count = 1,
     .verdict = DT_ORDER_FULL},
    {.about = "a GPU that a program outside uses is not given away",
     .machines = {{.name = "a", .gpus = 4, .foreign = 0x01}},
     .needs = {{.gpus = 2}},
     .need_count = 1,
     .verdict = DT_ORDER_START,
     .machine = {0, -1},
     .gpus = {0x06}},
    {.about = "one of two nodes is enough: a full one is passed over",
     .machines = {{.name = "a", .gpus = 2}, {.name = "b", .gpus = 2}},
     .used = {0x03, 0x01},
     .needs = {{.machine = 0, .gpus = 1}, {.machine = 1, .gpus = 1}},
     .need_count = 2,
     .wanted = 1,
     .verdict = DT_ORDER_START,
     .machine = {1, -1},
     .gpus = {0x02}},
    {.about = "a node that is full takes nothing of the other",
     .machines = {{.name = "a", .gpus = 2}, {.name = "b", .gpus = 2}},
     .used = {0, 0x02},
     .needs = {{.machine = 0, .gpus = 2}, {.machine = 1, .gpus = 2}},
     .need_count = 2,
     .verdict = DT_ORDER_FULL},
    {.about = "two nodes on one machine share no GPU",
     .machines = {{.name = "localhost", .gpus = 4}},
     .needs = {{.gpus = 1}, {.gpus = 2}},
     .need_count = 2,
     .verdict = DT_ORDER_START,
     .machine = {0, 0},
     .gpus = {0x01, 0x06}},
    {.about = "processors of one of two nodes",
     .machines = {{.name = "a", .cores = 4}, {.name = "b", .cores = 4}},
     .used_cores = {4, 0},
     .needs = {{.machine = 0, .cores = 4}, {.machine = 1, .cores = 4}},
     .need_count = 2,
     .wanted = 1,
     .verdict = DT_ORDER_START,
     .machine = {1, -1}},
    {.about = "more GPUs than there are",
     .machines = {{.name = "a", .gpus = 4}},
     .needs = {{.gpus = 2, .from_gpu = 3}},
     .need_count = 1,
     .verdict = DT_ORDER_NEVER},
};

static void check(const place *of, dt_arena *arena)
{
    dt_order_part used[MACHINES_MOST];
    dt_order_run runs[] = {{.id = "old", .group = -1, .parts = used, .part_count = MACHINES_MOST},
                           {.id = "new",
                            .group = -1,
                            .waits = true,
                            .needs = of->needs,
                            .need_count = of->need_count,
                            .wanted = of->wanted}};
    dt_order order = {.machines = of->machines,
                      .machine_count = MACHINES_MOST,
                      .runs = runs,
                      .run_count = 2,
                      .now_ms = 1000};
    int64_t parts = 0;

    for (int64_t i = 0; i < MACHINES_MOST; i++)
        used[i] = (dt_order_part){.machine = i, .gpus = of->used[i], .cores = of->used_cores[i]};
    dt_order_decide(&order, arena);
    if (runs[1].verdict != of->verdict)
        fail_msg("%s: verdict %d, not %d", of->about, (int)runs[1].verdict, (int)of->verdict);
    if (of->verdict != DT_ORDER_START)
        return;
    while (parts < NEEDS_MOST && of->machine[parts] >= 0)
        parts++;
    if (runs[1].part_count != parts)
        fail_msg("%s: %lld parts, not %lld", of->about, (long long)runs[1].part_count,
                 (long long)parts);
    for (int64_t i = 0; i < parts; i++)
        if (runs[1].parts[i].machine != of->machine[i] || runs[1].parts[i].gpus != of->gpus[i])
            fail_msg("%s: part %lld is on machine %lld with GPUs %llx", of->about, (long long)i,
                     (long long)runs[1].parts[i].machine,
                     (unsigned long long)runs[1].parts[i].gpus);
}

static void test_each_run_gets_its_place(void **state)
{
    dt_arena arena;

    dt_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        check(&places[i], &arena);
    dt_arena_release(&arena);
}

static void test_runs_on_one_machine_get_different_gpus(void **state)
{
    const dt_order_machine machine = {.name = "a", .gpus = 8};
    const dt_order_need need = {.gpus = 2};
    dt_order_run runs[5];
    dt_order order = {
        .machines = &machine, .machine_count = 1, .runs = runs, .run_count = 5, .now_ms = 1};
    uint64_t given = 0;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    for (int64_t i = 0; i < 5; i++)
        runs[i] = (dt_order_run){.id = (const char *[]){"0", "1", "2", "3", "4"}[i],
                                 .place = i,
                                 .group = -1,
                                 .waits = true,
                                 .needs = &need,
                                 .need_count = 1};
    dt_order_decide(&order, &arena);
    for (int64_t i = 0; i < 4; i++) {
        assert_int_equal(runs[i].verdict, DT_ORDER_START);
        assert_int_equal(runs[i].parts[0].gpus & given, 0);
        given |= runs[i].parts[0].gpus;
    }
    assert_int_equal(given, 0xff);
    assert_int_equal(runs[4].verdict, DT_ORDER_FULL);
    dt_arena_release(&arena);
}

/* Each run takes the whole machine for 10 s; the third has an unknown duration, so what comes after it is unknown. */
static void test_starts_are_expected_one_after_another(void **state)
{
    const dt_order_machine machine = {.name = "a", .gpus = 2};
    const dt_order_need need = {.gpus = 2};
    dt_order_part used = {.gpus = 3};
    dt_order_run runs[] = {
        {.id = "0", .group = -1, .parts = &used, .part_count = 1, .end_ms = 5000},
        {.id = "1", .place = 1, .lasts_ms = 10000},
        {.id = "2", .place = 2, .lasts_ms = 10000},
        {.id = "3", .place = 3},
        {.id = "4", .place = 4, .lasts_ms = 10000},
    };
    static const int64_t expected[] = {0, 5000, 15000, 25000, 0};
    dt_order order = {
        .machines = &machine, .machine_count = 1, .runs = runs, .run_count = 5, .now_ms = 1000};
    dt_arena arena;

    dt_arena_init(&arena, 0);
    for (size_t i = 1; i < 5; i++) {
        runs[i].group = -1;
        runs[i].waits = true;
        runs[i].needs = &need;
        runs[i].need_count = 1;
    }
    dt_order_decide(&order, &arena);
    dt_order_expect(&order, 1, &arena);
    assert_int_equal(runs[2].expected_ms, 0);
    dt_order_expect(&order, 100, &arena);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(runs[i].expected_ms, expected[i]);
    assert_int_equal(runs[1].verdict, DT_ORDER_FULL);
    dt_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_run_gets_its_place),
        cmocka_unit_test(test_runs_on_one_machine_get_different_gpus),
        cmocka_unit_test(test_starts_are_expected_one_after_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
