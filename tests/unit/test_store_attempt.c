#include "store_support.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

static void set(test_store *t, dt_run_state state, int exit_code, const char *reason, int64_t now)
{
    assert_good(t, dt_store_run_set_state(t->store, "aa", state, exit_code, reason, now, &t->err));
}

static dt_run get(test_store *t)
{
    dt_run run;

    assert_good(t, dt_store_run_find(t->store, &run, "aa", &t->arena, &t->err));
    return run;
}

static void test_an_attempt_starts_when_it_leaves_the_queue_and_ends_once(void **state)
{
    test_store *t = *state;

    test_store_run(t, "aa", "n");
    set(t, DT_RUN_QUEUED, -1, "", 10);
    assert_int_equal(get(t).started_ms, 0);
    set(t, DT_RUN_PREPARING, -1, "", 20);
    set(t, DT_RUN_RUNNING, -1, "", 30);
    assert_int_equal(get(t).started_ms, 20);
    assert_int_equal(get(t).ended_ms, 0);
    assert_int_equal(get(t).exit_code, -1);

    set(t, DT_RUN_FAILED, 1, "rank 1 died", 40);
    assert_int_equal(get(t).state, DT_RUN_FAILED);
    assert_int_equal(get(t).ended_ms, 40);
    assert_int_equal(get(t).exit_code, 1);
    assert_string_equal(get(t).reason, "rank 1 died");
    for (int s = 0; s < DT_RUN_STATE_COUNT; s++)
        assert_fails(t, dt_store_run_set_state(t->store, "aa", (dt_run_state)s, 0, "", 50, &t->err),
                     DT_ERR_BUSY, "its attempt 1 has already failed");
    assert_int_equal(get(t).ended_ms, 40);
    assert_fails(t, dt_store_run_set_state(t->store, "zz", DT_RUN_RUNNING, 0, "", 1, &t->err),
                 DT_ERR_NOT_FOUND, "'zz'");
}

/* The clock is set forward by three hours between start and end. */
static void test_a_clock_that_is_set_changes_nothing_of_what_a_run_took(void **state)
{
    test_store *t = *state;
    int64_t hours_ms = 3 * 3600 * 1000, attempt;
    double elapsed;

    test_store_run(t, "aa", "n");
    assert_true(isnan(dt_run_elapsed_seconds(&(dt_run){.boot_id = ""}, 5)));
    set(t, DT_RUN_PREPARING, -1, "", dt_clock_wall_ms());
    test_store_run_sql(t, "UPDATE attempts SET started_ms = started_ms - 3 * 3600 * 1000");
    dt_run run = get(t);
    elapsed = dt_run_elapsed_seconds(&run, dt_clock_wall_ms());
    assert_true(elapsed >= 0 && elapsed < 3600);
    set(t, DT_RUN_STOPPED, 4, "", dt_clock_wall_ms());
    run = get(t);
    elapsed = dt_run_elapsed_seconds(&run, dt_clock_wall_ms() + hours_ms);
    assert_true(elapsed >= 0 && elapsed < 3600);

    /* another boot, or an old row: only the wall clock is known */
    assert_good(t, dt_store_attempt_add(t->store, "aa", 0, 9, "{}", "h", 50, &attempt, &t->err));
    set(t, DT_RUN_RUNNING, -1, "", 1000);
    run = get(t);
    assert_true(dt_run_elapsed_seconds(&run, 31000) - elapsed > 29.9);
    set(t, DT_RUN_STOPPED, 4, "", 41000);
    run = get(t);
    assert_true(dt_run_elapsed_seconds(&run, 99000) - elapsed < 40.1); /* of both attempts */
}

static void test_what_set_changed_is_kept_with_the_attempt(void **state)
{
    test_store *t = *state;
    int64_t attempt, count;
    dt_attempt *attempts;

    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_attempt_set_changes(t->store, "aa", "[1]", &t->err));
    set(t, DT_RUN_STOPPED, 4, "", 40);
    assert_good(t, dt_store_attempt_add(t->store, "aa", 0, 9, "{}", "h", 50, &attempt, &t->err));
    assert_good(t, dt_store_attempt_list(t->store, &attempts, &count, "aa", &t->arena, &t->err));
    assert_string_equal(attempts[0].changes_json, "[1]");
    assert_string_equal(attempts[1].changes_json, "[]");
    assert_int_equal(attempts[1].elapsed_ms, -1);
}

static void add_attempt(test_store *t, int64_t start_step, int64_t steps, const char *recipe)
{
    int64_t attempt;

    assert_good(t, dt_store_attempt_add(t->store, "aa", start_step, steps, recipe, recipe, 50,
                                        &attempt, &t->err));
}

static void standing_is(test_store *t, int64_t attempt, const char *recipe)
{
    dt_standing standing;

    assert_good(t, dt_store_run_standing(t->store, &standing, "aa", &t->arena, &t->err));
    assert_int_equal(standing.attempt, attempt);
    assert_string_equal(standing.recipe_json, recipe);
}

static void restore(test_store *t, bool wanted)
{
    bool restored;

    assert_good(t, dt_store_run_restore(t->store, &restored, "aa", &t->err));
    assert_int_equal(restored, wanted);
}

static void step_done(test_store *t, int64_t step)
{
    assert_good(t, dt_store_run_set_progress(t->store, "aa", step, 1, NAN, NAN, 20, &t->err));
}

static void test_an_attempt_that_failed_before_its_first_step_leaves_no_recipe(void **state)
{
    test_store *t = *state;
    dt_attempt *attempts;
    int64_t count;

    test_store_run(t, "aa", "n");
    standing_is(t, 1, get(t).recipe_json); /* whatever its end is */
    step_done(t, 100);
    set(t, DT_RUN_FINISHED, 0, "", 40);
    restore(t, false);
    add_attempt(t, 100, 200, "bad");
    set(t, DT_RUN_FAILED, 1, "cannot", 60);
    standing_is(t, 1, "{}");
    restore(t, true);
    assert_int_equal(get(t).state, DT_RUN_FINISHED);
    assert_int_equal(get(t).attempt, 1);
    assert_int_equal(get(t).step, 100);
    assert_int_equal(get(t).steps_total, 100);
    restore(t, false); /* only once */

    add_attempt(t, 100, 200, "good"); /* numbers are not reused */
    assert_int_equal(get(t).attempt, 3);
    step_done(t, 110);
    set(t, DT_RUN_FAILED, 1, "killed", 80);
    restore(t, false); /* it did a step */
    standing_is(t, 3, "good");
    add_attempt(t, 100, 200, "bad");
    set(t, DT_RUN_FAILED, 1, "cannot", 90);
    restore(t, false); /* it had not finished */
    standing_is(t, 3, "good");
    add_attempt(t, 100, 200, "stopped");
    set(t, DT_RUN_STOPPED, 4, "by a person, who wanted that recipe", 90);
    standing_is(t, 5, "stopped");
    assert_good(t, dt_store_attempt_list(t->store, &attempts, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 5);
    assert_int_equal(attempts[1].state, DT_RUN_FAILED);
}

static void test_a_run_may_end_before_it_starts(void **state)
{
    test_store *t = *state;

    test_store_run(t, "aa", "n");
    set(t, DT_RUN_STOPPED, 4, "stopped by a person", 15);
    assert_int_equal(get(t).started_ms, 0);
    assert_int_equal(get(t).ended_ms, 15);
}

static void test_only_an_ended_run_gets_another_attempt(void **state)
{
    test_store *t = *state;
    int64_t attempt, count;
    dt_attempt *attempts;
    dt_run run;

    test_store_run(t, "aa", "n");
    set(t, DT_RUN_RUNNING, -1, "", 20);
    assert_good(t, dt_store_run_set_progress(t->store, "aa", 60, 1.5, NAN, 9, 25, &t->err));
    assert_fails(t,
                 dt_store_attempt_add(t->store, "aa", 50, 200, "{}", "h2", 30, &attempt, &t->err),
                 DT_ERR_BUSY, "it is running");
    set(t, DT_RUN_STOPPED, 4, "stopped by a person", 40);
    assert_good(
        t, dt_store_attempt_add(t->store, "aa", 50, 200, "{\"a\":2}", "h2", 50, &attempt, &t->err));
    assert_int_equal(attempt, 2);

    run = get(t);
    assert_int_equal(run.attempt, 2);
    assert_int_equal(run.state, DT_RUN_QUEUED);
    assert_int_equal(run.step, 50);
    assert_int_equal(run.steps_total, 200);
    assert_int_equal(run.created_ms, 1000); /* of the run */
    assert_int_equal(run.started_ms, 0);
    assert_int_equal(run.first_step_ms, 0);
    assert_int_equal(run.exit_code, -1);
    assert_string_equal(run.reason, "");
    assert_string_equal(run.recipe_json, "{\"a\":2}");
    assert_string_equal(run.recipe_hash, "h2");

    assert_good(t, dt_store_attempt_list(t->store, &attempts, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 2);
    assert_int_equal(attempts[0].attempt, 1);
    assert_int_equal(attempts[0].state, DT_RUN_STOPPED);
    assert_int_equal(attempts[0].started_ms, 20);
    assert_int_equal(attempts[0].ended_ms, 40);
    assert_int_equal(attempts[0].exit_code, 4);
    assert_string_equal(attempts[0].reason, "stopped by a person");
    assert_int_equal(attempts[1].start_step, 50);
    assert_int_equal(attempts[1].created_ms, 50);
    assert_int_equal(attempts[1].exit_code, -1);
    assert_fails(t, dt_store_attempt_list(t->store, &attempts, &count, "zz", &t->arena, &t->err),
                 DT_ERR_NOT_FOUND, "'zz'");
}

static void test_nodes_and_ranks_are_replaced_and_belong_to_an_attempt(void **state)
{
    test_store *t = *state;
    dt_rank rank = {.rank = 1,
                    .local_rank = 1,
                    .device = "cpu",
                    .state = "waiting",
                    .exit_code = -1,
                    .exit_signal = -1};
    dt_node node = {.name = "gpu-a", .state = "ready", .acknowledged = 7};
    int64_t count;
    dt_node *nodes;
    dt_rank *ranks;

    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_node_set(t->store, "aa", 1, &node, &t->err));
    node.state = "released";
    node.acknowledged = 12;
    assert_good(t, dt_store_node_set(t->store, "aa", 1, &node, &t->err));
    assert_good(t, dt_store_node_list(t->store, &nodes, &count, "aa", 1, &t->arena, &t->err));
    assert_int_equal(count, 1);
    assert_string_equal(nodes[0].name, "gpu-a");
    assert_string_equal(nodes[0].state, "released");
    assert_int_equal(nodes[0].acknowledged, 12);
    assert_string_equal(nodes[0].boot_id, "");
    node.boot_id = "0-1";
    assert_good(t, dt_store_node_set(t->store, "aa", 1, &node, &t->err));
    assert_good(t, dt_store_node_list(t->store, &nodes, &count, "aa", 1, &t->arena, &t->err));
    assert_string_equal(nodes[0].boot_id, "0-1");

    assert_good(t, dt_store_rank_set(t->store, "aa", 1, &rank, &t->err));
    rank.pid = 4242;
    rank.state = "failed";
    rank.exit_signal = 9;
    rank.log_bytes = 1 << 20;
    assert_good(t, dt_store_rank_set(t->store, "aa", 1, &rank, &t->err));
    rank.rank = 0;
    assert_good(t, dt_store_rank_set(t->store, "aa", 1, &rank, &t->err));
    assert_good(t, dt_store_rank_list(t->store, &ranks, &count, "aa", 1, &t->arena, &t->err));
    assert_int_equal(count, 2);
    assert_int_equal(ranks[0].rank, 0);
    assert_int_equal(ranks[1].pid, 4242);
    assert_string_equal(ranks[1].state, "failed");
    assert_int_equal(ranks[1].exit_code, -1);
    assert_int_equal(ranks[1].exit_signal, 9);
    assert_int_equal(ranks[1].log_bytes, 1 << 20);

    assert_good(t, dt_store_rank_list(t->store, &ranks, &count, "aa", 2, &t->arena, &t->err));
    assert_int_equal(count, 0);
    assert_fails(t, dt_store_node_set(t->store, "aa", 2, &node, &t->err), DT_ERR_IO,
                 "FOREIGN KEY"); /* attempt 2 does not exist */
    assert_fails(t, dt_store_node_set(t->store, "zz", 1, &node, &t->err), DT_ERR_NOT_FOUND, "'zz'");
}

static void test_a_removed_run_takes_its_rows_with_it(void **state)
{
    test_store *t = *state;
    dt_store_event event = {.attempt = 1, .node = 0, .rank = -1, .kind = "k", .json = "{}"};
    dt_store_checkpoint checkpoint = {.attempt = 1, .path = "p"};

    test_store_run(t, "aa", "n");
    test_store_run(t, "bb", "n");
    for (int i = 0; i < 2; i++) {
        const char *id = i == 0 ? "aa" : "bb";

        assert_good(t, dt_store_metric_add(t->store, id, 1, 1, "loss", 1, 1, &t->err));
        assert_good(t, dt_store_event_add(t->store, id, &event, &t->err));
        assert_good(t, dt_store_checkpoint_add(t->store, id, &checkpoint, &t->err));
        assert_good(t, dt_store_node_set(t->store, id, 1, &(dt_node){.name = "x", .state = "ready"},
                                         &t->err));
        assert_good(t, dt_store_rank_set(t->store, id, 1, &(dt_rank){.state = "ready"}, &t->err));
    }
    test_store_run_sql(t, "PRAGMA foreign_keys = ON; DELETE FROM runs WHERE id = 'aa'");
    assert_int_equal(
        test_store_number(t, "SELECT (SELECT count(*) FROM attempts) + (SELECT count(*) FROM nodes)"
                             " + (SELECT count(*) FROM ranks) + (SELECT count(*) FROM series)"
                             " + (SELECT count(*) FROM metrics) + (SELECT count(*) FROM events)"
                             " + (SELECT count(*) FROM checkpoints)"),
        7); /* those of the other run */
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, test_store_setup, test_store_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(test_an_attempt_starts_when_it_leaves_the_queue_and_ends_once),
        WITH_STORE(test_a_clock_that_is_set_changes_nothing_of_what_a_run_took),
        WITH_STORE(test_what_set_changed_is_kept_with_the_attempt),
        WITH_STORE(test_an_attempt_that_failed_before_its_first_step_leaves_no_recipe),
        WITH_STORE(test_a_run_may_end_before_it_starts),
        WITH_STORE(test_only_an_ended_run_gets_another_attempt),
        WITH_STORE(test_nodes_and_ranks_are_replaced_and_belong_to_an_attempt),
        WITH_STORE(test_a_removed_run_takes_its_rows_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
