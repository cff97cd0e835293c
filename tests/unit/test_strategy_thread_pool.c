/* A pool of threads that all do the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "engine/strategy/strategy_int.h"

#define MEMBERS 4

typedef struct task {
    int runs[MEMBERS];
    pthread_t thread[MEMBERS];
    int64_t fail_from; /* members from this one on fail */
} task;

static dt_status count(void *self, int64_t member, dt_error *err)
{
    task *t = self;

    t->runs[member]++;
    t->thread[member] = pthread_self();
    if (member >= t->fail_from)
        return DT_FAIL(err, DT_ERR_CORRUPT, "member %d", (int)member);
    return DT_OK;
}

static void test_each_member_runs_once_per_task_in_its_own_thread(void **state)
{
    task t = {.fail_from = MEMBERS};
    dt_thread_pool *thread_pool;

    assert_int_equal(dt_thread_pool_open(&thread_pool, MEMBERS, NULL), DT_OK);
    for (int i = 1; i <= 100; i++) {
        assert_int_equal(dt_thread_pool_run(thread_pool, count, &t, NULL), DT_OK);
        for (int m = 0; m < MEMBERS; m++)
            assert_int_equal(t.runs[m], i);
    }
    assert_true(pthread_equal(t.thread[0], pthread_self()));
    for (int m = 1; m < MEMBERS; m++)
        assert_false(pthread_equal(t.thread[m], t.thread[m - 1]));
    dt_thread_pool_close(thread_pool);
}

static void test_the_first_failing_member_is_reported_and_the_next_task_is_clean(void **state)
{
    task t = {.fail_from = 2};
    dt_error err = DT_ERROR_INIT;
    dt_thread_pool *thread_pool;

    assert_int_equal(dt_thread_pool_open(&thread_pool, MEMBERS, NULL), DT_OK);
    assert_int_equal(dt_thread_pool_run(thread_pool, count, &t, &err), DT_ERR_CORRUPT);
    assert_string_equal(err.message, "member 2");
    t.fail_from = MEMBERS;
    assert_int_equal(dt_thread_pool_run(thread_pool, count, &t, NULL), DT_OK);
    for (int m = 0; m < MEMBERS; m++)
        assert_int_equal(t.runs[m], 2);
    dt_thread_pool_close(thread_pool);
    dt_thread_pool_close(NULL);
}

static void test_a_team_of_one_is_the_caller(void **state)
{
    task t = {.fail_from = MEMBERS};
    dt_thread_pool *thread_pool;

    assert_int_equal(dt_thread_pool_open(&thread_pool, 1, NULL), DT_OK);
    assert_int_equal(dt_thread_pool_run(thread_pool, count, &t, NULL), DT_OK);
    assert_int_equal(t.runs[0], 1);
    assert_int_equal(t.runs[1], 0);
    dt_thread_pool_close(thread_pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_member_runs_once_per_task_in_its_own_thread),
        cmocka_unit_test(test_the_first_failing_member_is_reported_and_the_next_task_is_clean),
        cmocka_unit_test(test_a_team_of_one_is_the_caller),
    };

    return cmocka_run_group_tests_name("strategy: a team of threads", tests, NULL, NULL);
}
