/* Points of an open transaction, which are in memory, as every reader must see them. */
#include "store_support.h"

#include <string.h>

#include "store/repair.h"
#include "store/store_int.h"

enum { STEPS = 150, CURVES = 3, ATTEMPTS = 2, MANY = 70000 };

static uint64_t seed = 38;

static int64_t dice(int64_t sides)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)sides);
}

static dt_status add(test_store *t, int64_t attempt, int64_t step, const char *name, double value)
{
    return dt_store_metric_add(t->store, "aa", attempt, step, name, value, step, &t->err);
}

static void assert_sound(test_store *t)
{
    const char **problems;
    int64_t count;

    assert_good(t, dt_store_verify(t->store, &problems, &count, &t->arena, &t->err));
    assert_int_equal(count, 0);
}

/* Steps in any order, many of them again, in this transaction or an earlier one. */
static void test_the_first_of_several_points_is_kept(void **state)
{
    static const char *const names[CURVES] = {"loss", "a", "b"};
    static double first[CURVES][ATTEMPTS][STEPS]; /* 0: none */
    test_store *t = *state;
    int64_t count = 0;

    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_begin(t->store, &t->err));
    for (int64_t i = 1; i <= 3000; i++) {
        int64_t curve = dice(CURVES), attempt = dice(ATTEMPTS);
        int64_t step = dice(2) == 0 ? dice(STEPS) : i * STEPS / 3001;
        double *kept = &first[curve][attempt][step];
        dt_metric point = {
            .attempt = attempt + 1, .step = step, .time_ms = step, .name = names[curve]};
        bool has;

        assert_good(t, add(t, attempt + 1, step, names[curve], (double)i));
        count += *kept == 0;
        *kept = *kept == 0 ? (double)i : *kept;
        point.value = *kept;
        if (dice(50) == 0) {
            assert_good(t, dt_store_metric_has(t->store, &has, "aa", &point, &t->err));
            assert_true(has);
        }
        if (dice(300) == 0) {
            assert_good(t, dt_store_commit(t->store, &t->err));
            assert_int_equal(test_store_number(t, "SELECT count(*) FROM metrics"), count);
            assert_good(t, dt_store_begin(t->store, &t->err));
        }
    }
    assert_good(t, dt_store_commit(t->store, &t->err));
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM metrics"), count);
    for (int64_t c = 0; c < CURVES; c++)
        for (int64_t a = 0; a < ATTEMPTS; a++)
            for (int64_t s = 0; s < STEPS; s++) {
                const dt_metric point = {.attempt = a + 1,
                                         .step = s,
                                         .time_ms = s,
                                         .name = names[c],
                                         .value = first[c][a][s]};
                bool has;

                assert_good(t, dt_store_metric_has(t->store, &has, "aa", &point, &t->err));
                assert_int_equal(has, first[c][a][s] != 0);
            }
    assert_sound(t);
}

static void test_more_points_than_memory_holds(void **state)
{
    test_store *t = *state;

    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_begin(t->store, &t->err));
    for (int64_t i = 0; i < MANY; i++)
        assert_good(t, add(t, 1, i / 2, i % 2 == 0 ? "loss" : "a", (double)i));
    assert_good(t, dt_store_commit(t->store, &t->err));
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM metrics"), MANY);
    assert_sound(t);
}

static void test_a_run_can_be_removed_after_its_points(void **state)
{
    test_store *t = *state;

    test_store_run(t, "aa", "n");
    test_store_run(t, "bb", "m");
    assert_good(t, dt_store_begin(t->store, &t->err));
    assert_good(t, add(t, 1, 1, "loss", 1));
    assert_good(t, dt_store_metric_add(t->store, "bb", 1, 1, "loss", 1, 1, &t->err));
    assert_good(t, dt_store_run_remove(t->store, "aa", &t->err));
    assert_good(t, dt_store_commit(t->store, &t->err));
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM metrics"), 1);
    assert_sound(t);
}

/* Its points cannot be told from those of the transaction around it. */
static void test_a_failed_group_with_points_ends_the_transaction(void **state)
{
    test_store *t = *state;
    dt_sql_group group = {0};

    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_begin(t->store, &t->err));
    assert_good(t, add(t, 1, 1, "loss", 1));
    assert_good(t, dt_sql_group_begin(&group, t->store, &t->err));
    assert_int_equal(dt_sql_group_end(&group, DT_ERR_BUSY, &t->err), DT_ERR_BUSY);
    assert_good(t, dt_store_commit(t->store, &t->err)); /* the group had no points */
    assert_good(t, dt_store_begin(t->store, &t->err));
    assert_good(t, dt_sql_group_begin(&group, t->store, &t->err));
    assert_good(t, add(t, 1, 2, "loss", 2));
    assert_int_equal(dt_sql_group_end(&group, DT_ERR_BUSY, &t->err), DT_ERR_BUSY);
    assert_fails(t, dt_store_commit(t->store, &t->err), DT_ERR_IO, "earlier write");
    dt_store_rollback(t->store);
    assert_good(t, add(t, 1, 3, "loss", 3));
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM metrics"), 2);
    assert_sound(t);
}

/* A caller that adds points after an error gets an error for each of them. */
static void test_points_that_cannot_be_written_are_refused(void **state)
{
    test_store *t = *state;
    dt_status st = DT_OK;

    test_store_run(t, "aa", "n");
    assert_int_equal(sqlite3_exec(t->store->db,
                                  "CREATE TEMP TRIGGER full BEFORE INSERT ON metrics BEGIN"
                                  " SELECT RAISE(ABORT, 'full'); END",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_good(t, dt_store_begin(t->store, &t->err));
    for (int64_t step = 1; step <= MANY && st == DT_OK; step++)
        st = add(t, 1, step, "loss", 1);
    assert_int_not_equal(st, DT_OK);
    t->err = (dt_error)DT_ERROR_INIT;
    for (int64_t step = 1; step <= 10; step++)
        assert_fails(t, add(t, 1, MANY + step, "loss", 1), DT_ERR_IO, "earlier write");
    assert_fails(t, dt_store_commit(t->store, &t->err), DT_ERR_IO, "earlier write");
    dt_store_rollback(t->store);
    assert_int_equal(sqlite3_exec(t->store->db, "DROP TRIGGER full", NULL, NULL, NULL), SQLITE_OK);
    assert_good(t, add(t, 1, 1, "loss", 1));
    assert_sound(t);
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, test_store_setup, test_store_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(test_the_first_of_several_points_is_kept),
        WITH_STORE(test_more_points_than_memory_holds),
        WITH_STORE(test_a_run_can_be_removed_after_its_points),
        WITH_STORE(test_a_failed_group_with_points_ends_the_transaction),
        WITH_STORE(test_points_that_cannot_be_written_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
