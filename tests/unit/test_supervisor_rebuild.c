/* rebuild: restores the rows of a run from its folder, if the store has none or older ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/process.h"
#include "checkpoint_support.h"
#include "runner/channel/protocol.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "runner/supervisor/policy/verdict.h"
#include "runner/supervisor/rebuild/rebuild.h"
#include "runner/supervisor/supervisor.h"
#include "store/repair.h"
#include "store_support.h"

static const char *folder_of(test_store *t)
{
    const char *folder;

    setenv("XDG_STATE_HOME", t->folder, 1);
    assert_good(t, dt_run_path(&folder, "aa", NULL, &t->arena, &t->err));
    return folder;
}

static void put(test_store *t, const char *name, const char *text)
{
    const char *path = dt_arena_printf(&t->arena, "%s/%s", folder_of(t), name);
    const char *parent = dt_arena_printf(&t->arena, "%.*s", (int)(strrchr(path, '/') - path), path);

    assert_good(t, dt_file_make_dirs(parent, 0700, &t->err));
    assert_good(t, dt_file_write_atomic(path, text, strlen(text), 0600, &t->err));
}

/* Records an attempt at `step`, resumed from where the previous one was. */
static void keep(test_store *t, int64_t attempt, dt_run_state state, int64_t step)
{
    static const dt_node nodes[] = {
        {.node = 0, .name = "a", .state = "released", .acknowledged = 7},
        {.node = 1, .name = "b", .state = "running", .acknowledged = 9}};
    const dt_attempt_record record = {
        .run = {.id = "aa",
                .name = "n",
                .state = state,
                .attempt = attempt,
                .created_ms = 1000,
                .started_ms = 2000 * attempt,
                .first_step_ms = step > 0 ? 2500 * attempt : 0,
                .ended_ms = dt_run_state_is_terminal(state) ? 3000 * attempt : 0,
                .step = step,
                .steps_total = 100,
                .loss = 0.1,
                .valid_loss = NAN,
                .tokens_per_second = 7,
                .recipe_path = "/r.yaml",
                .recipe_json = "{\"name\": \"n\"}",
                .recipe_hash = "h",
                .exit_code = dt_run_state_is_terminal(state) ? 3 : -1,
                .reason = "why"},
        .created_ms = 1500 * attempt,
        .start_step = 10 * (attempt - 1),
        .nodes = nodes,
        .node_count = 2,
        .changes_json = "[1]",
        .provenance_json = "{\"host\": \"h\"}"};

    put(t, dt_arena_printf(&t->arena, "attempt-%lld/plan.json", (long long)attempt), "{}");
    assert_good(t, dt_attempt_record_write(&record, folder_of(t), &t->err));
}

static bool rebuild(test_store *t)
{
    bool rebuilt;

    assert_good(t, dt_rebuild_run(&rebuilt, t->store, "aa", &t->err));
    return rebuilt;
}

static dt_run find(test_store *t)
{
    dt_run run;

    assert_good(t, dt_store_run_find(t->store, &run, "aa", &t->arena, &t->err));
    return run;
}

static int64_t count_gaps(test_store *t)
{
    return test_store_number(t, "SELECT count(*) FROM events WHERE kind = 'gap'");
}

static int64_t count_nodes(test_store *t, int64_t attempt, const char *state)
{
    dt_node *nodes;
    int64_t count, found = 0;

    assert_good(t, dt_store_node_list(t->store, &nodes, &count, "aa", attempt, &t->arena, &t->err));
    for (int64_t i = 0; i < count; i++)
        found += strcmp(nodes[i].state, state) == 0;
    return found;
}

/* The next attempt, or a stop, asks again whether processes are left there. */
static void test_nodes_of_an_attempt_whose_end_is_not_known_are_lost(void **state)
{
    test_store *t = *state;

    keep(t, 1, DT_RUN_RUNNING, 5);
    keep(t, 2, DT_RUN_FAILED, 10);
    assert_true(rebuild(t));
    assert_int_equal(count_nodes(t, 1, "released"), 1);
    assert_int_equal(count_nodes(t, 1, "lost"), 1);
    assert_int_equal(count_nodes(t, 2, "running"), 1); /* as it was at its end */
}

static void test_a_run_that_the_store_lacks_is_there_again(void **state)
{
    test_store *t = *state;
    dt_attempt *attempts;
    int64_t count;
    dt_run run;

    put(t, "recipe.yaml", "name: n\n");
    keep(t, 1, DT_RUN_FAILED, 10);
    keep(t, 2, DT_RUN_FINISHED, 100);
    assert_true(rebuild(t));
    run = find(t);
    assert_string_equal(run.name, "n");
    assert_string_equal(run.recipe_text, "name: n\n");
    assert_string_equal(run.recipe_json, "{\"name\": \"n\"}");
    assert_int_equal(run.attempt, 2);
    assert_int_equal(run.state, DT_RUN_FINISHED);
    assert_int_equal(run.exit_code, 3);
    assert_int_equal(run.created_ms, 1000);
    assert_int_equal(run.ended_ms, 6000);
    assert_int_equal(run.step, 100);
    assert_true(run.loss == 0.1 && isnan(run.valid_loss));
    assert_good(t, dt_store_attempt_list(t->store, &attempts, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 2);
    assert_int_equal(attempts[0].state, DT_RUN_FAILED);
    assert_string_equal(attempts[0].reason, "why");
    assert_string_equal(attempts[0].changes_json, "[1]");
    assert_string_equal(attempts[0].provenance_json, "{\"host\": \"h\"}");
    assert_int_equal(attempts[1].start_step, 10);
    assert_int_equal(count_gaps(t), 1);
    assert_false(rebuild(t)); /* only once */
    assert_int_equal(count_gaps(t), 1);
}

static void test_an_active_run_continues(void **state)
{
    test_store *t = *state;

    keep(t, 1, DT_RUN_RUNNING, 0);
    assert_true(rebuild(t));
    assert_int_equal(find(t).state, DT_RUN_QUEUED); /* nothing was started on a node */
}

static void test_one_whose_nodes_were_begun_is_followed(void **state)
{
    test_store *t = *state;
    dt_rank *ranks;
    int64_t count;

    keep(t, 1, DT_RUN_QUEUED, 0);
    put(t, "attempt-1/node-0/place.json", "{}");
    put(t, "logs/rank-1.log", "a line\n");
    assert_true(rebuild(t));
    assert_int_equal(find(t).state, DT_RUN_STARTING);
    assert_good(t, dt_store_rank_list(t->store, &ranks, &count, "aa", 1, &t->arena, &t->err));
    assert_int_equal(count, 1);
    assert_int_equal(ranks[0].rank, 1);
    assert_int_equal(ranks[0].log_bytes, 7); /* and is not cut */
}

static void test_one_that_ran_is_running(void **state)
{
    test_store *t = *state;

    keep(t, 1, DT_RUN_RUNNING, 0);
    put(t, "attempt-1/node-0/place.json", "{}");
    assert_true(rebuild(t));
    assert_int_equal(find(t).state, DT_RUN_RUNNING);
}

static void test_a_stop_that_was_asked_for_is_not_forgotten(void **state)
{
    test_store *t = *state;
    dt_attempt_record record;

    keep(t, 1, DT_RUN_RUNNING, 5);
    assert_good(t, dt_attempt_record_read(&record, folder_of(t), 1, &t->arena, &t->err));
    record.stop_asked = true;
    assert_good(t, dt_attempt_record_write(&record, folder_of(t), &t->err));
    assert_true(rebuild(t));
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM events WHERE kind = 'stop'"), 1);
}

static void test_an_older_store_is_brought_forward(void **state)
{
    test_store *t = *state;
    dt_attempt *attempts;
    int64_t count;

    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_run_set_state(t->store, "aa", DT_RUN_RUNNING, -1, "", 2000, &t->err));
    keep(t, 1, DT_RUN_RUNNING, 5);
    assert_false(rebuild(t)); /* they agree */
    keep(t, 1, DT_RUN_FAILED, 10);
    keep(t, 3, DT_RUN_RUNNING, 30); /* attempt 2 wrote nothing */
    assert_true(rebuild(t));
    assert_good(t, dt_store_attempt_list(t->store, &attempts, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 3);
    assert_int_equal(count_nodes(t, 2, "lost"), 0); /* none is known */
    assert_int_equal(count_nodes(t, 3, "lost"), 0); /* it is followed again */
    assert_int_equal(attempts[0].state, DT_RUN_FAILED);
    assert_string_equal(attempts[0].reason, "why");
    assert_int_equal(attempts[1].state, DT_RUN_FAILED);
    assert_int_equal(attempts[2].state, DT_RUN_QUEUED);
    assert_int_equal(find(t).attempt, 3);
    assert_int_equal(count_gaps(t), 1);
}

static void test_attempts_of_which_nothing_is_known_keep_their_numbers(void **state)
{
    test_store *t = *state;

    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_run_set_state(t->store, "aa", DT_RUN_FAILED, 1, "", 2000, &t->err));
    keep(t, 3, DT_RUN_FAILED, 30);
    assert_true(rebuild(t));
    assert_int_equal(find(t).attempt, 3);
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM attempts"), 3);
}

static void test_what_a_newer_dtrun_kept_is_left_alone(void **state)
{
    test_store *t = *state;
    bool rebuilt;

    put(t, "attempt-1/history.json", "{\"version\": 2}");
    assert_fails(t, dt_rebuild_run(&rebuilt, t->store, "aa", &t->err), DT_ERR_UNSUPPORTED,
                 "cannot restore run");
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM runs"), 0);
}

static void test_an_end_that_an_older_store_does_not_know(void **state)
{
    test_store *t = *state;

    test_store_run(t, "aa", "n");
    keep(t, 1, DT_RUN_STOPPED, 50);
    assert_true(rebuild(t));
    assert_int_equal(find(t).state, DT_RUN_STOPPED);
    assert_int_equal(find(t).step, 50);
}

static void store_nodes(test_store *t, int64_t first, int64_t second)
{
    const dt_node rows[] = {{.node = 0, .name = "a", .state = "released", .acknowledged = first},
                            {.node = 1, .name = "b", .state = "running", .acknowledged = second}};

    assert_good(t, dt_store_node_set(t->store, "aa", 1, &rows[0], &t->err));
    assert_good(t, dt_store_node_set(t->store, "aa", 1, &rows[1], &t->err));
}

static int64_t count_checkpoints(test_store *t)
{
    return test_store_number(t, "SELECT count(*) FROM checkpoints");
}

/* A supervisor was killed between the two writes of an end. */
static void test_a_store_that_lacks_only_the_end_is_not_an_older_copy(void **state)
{
    test_store *t = *state;
    fake_world world;

    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_run_set_state(t->store, "aa", DT_RUN_RUNNING, -1, "", 2000, &t->err));
    store_nodes(t, 7, 9);
    keep(t, 1, DT_RUN_FAILED, 100);
    fake_world_init(&world, folder_of(t));
    fake_must_save(&world); /* it was not reported */
    assert_true(rebuild(t));
    assert_int_equal(find(t).state, DT_RUN_FAILED);
    assert_int_equal(find(t).exit_code, 3);
    assert_string_equal(find(t).reason, "why");
    assert_int_equal(find(t).ended_ms, 3000);
    assert_int_equal(count_gaps(t), 0);
    assert_int_equal(count_checkpoints(t), 0);
    assert_int_equal(count_nodes(t, 1, "running"), 1);
    assert_false(rebuild(t));
    fake_world_release(&world);
}

static void test_a_store_that_lacks_events_of_one_node_is_an_older_one(void **state)
{
    test_store *t = *state;
    fake_world world;

    test_store_run(t, "aa", "n");
    store_nodes(t, 7, 8);
    keep(t, 1, DT_RUN_FAILED, 100);
    fake_world_init(&world, folder_of(t));
    fake_must_save(&world);
    assert_true(rebuild(t));
    assert_int_equal(find(t).state, DT_RUN_FAILED);
    assert_int_equal(count_gaps(t), 1);
    assert_int_equal(count_checkpoints(t), 1);
    fake_world_release(&world);
}

static void test_checkpoints_of_the_folder_are_known_again(void **state)
{
    test_store *t = *state;
    dt_store_checkpoint *rows;
    fake_world world;
    int64_t count;

    keep(t, 1, DT_RUN_FAILED, 100);
    fake_world_init(&world, folder_of(t)); /* FOLDER/checkpoints, step 100 of attempt 1 */
    fake_must_save(&world);
    assert_true(rebuild(t));
    assert_good(t, dt_store_checkpoint_list(t->store, &rows, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].step, 100);
    assert_int_equal(rows[0].attempt, 1);
    assert_string_equal(rows[0].digest, world.saved[0].digest);
    assert_true(rows[0].bytes >= world.saved[0].bytes && rows[0].time_ms > 0);
    fake_world_release(&world);
}

/* Writes the journal of node 0 of attempt 1: every kind of row, a damaged line, and a gap. */
static void put_journal(test_store *t)
{
    static const char *const lines[] = {
        "{\"event\":\"started\",\"rank\":0,\"local_rank\":0,\"pid\":77,\"device\":\"cpu\","
        "\"time_ms\":1,\"sequence\":0}",
        "{\"event\":\"metrics\",\"step\":1,\"values\":{\"loss\":2.5,\"valid_loss\":null},"
        "\"rank\":0,\"time_ms\":2,\"sequence\":1}",
        "{\"event\":\"metrics\",\"step\":2,\"values\":{\"loss\":9},\"rank\":0,\"time_ms\":3,"
        "\"sequence\":2}", /* damaged below */
        "{\"event\":\"metrics\",\"step\":3,\"values\":{\"loss\":1.5},\"rank\":0,\"time_ms\":4,"
        "\"sequence\":3}",
        "{\"event\":\"sample\",\"text\":\"of an unknown kind\",\"rank\":0,\"time_ms\":5,"
        "\"sequence\":4}",
        "{\"event\":\"checkpoint\",\"step\":3,\"directory\":\"step-00000003\",\"bytes\":8,"
        "\"digest\":\"d\",\"seconds\":1,\"rank\":0,\"time_ms\":6,\"sequence\":5}",
        "{\"event\":\"metrics\",\"step\":4,\"values\":{\"loss\":1},\"rank\":0,\"time_ms\":7,"
        "\"sequence\":5}", /* a repeated number */
        "{\"event\":\"exited\",\"rank\":0,\"code\":0,\"signal\":null,\"signal_name\":\"\","
        "\"reason\":\"\",\"lines\":[],\"time_ms\":8,\"sequence\":6}",
    };
    const char *path =
        dt_arena_printf(&t->arena, "%s/attempt-1/node-0/journal.jsonl", folder_of(t));
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        size_t from = text.length;

        dt_strbuf_add_str(&text, lines[i]);
        dt_journal_line_sign(&text, from);
        dt_strbuf_add_char(&text, '\n');
    }
    *strstr(text.data, "values\":{\"loss\":9") = '\0';
    dt_strbuf_add_str(&text, "{\"event\":\"metrics\",\"step\":5"); /* cut off */
    put(t, "attempt-1/node-0/place.json", "{}");
    assert_good(t, dt_file_write_atomic(path, text.data, text.length, 0600, &t->err));
    dt_strbuf_release(&text);
}

static void test_journals_of_an_attempt_that_ended_give_their_rows_once(void **state)
{
    test_store *t = *state;
    int64_t missing, filled;

    put_journal(t);
    keep(t, 1, DT_RUN_FAILED, 3);
    assert_true(rebuild(t));
    assert_false(rebuild(t));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(test_store_number(t, "SELECT count(*) FROM metrics"), 3);
        assert_int_equal(test_store_number(t, "SELECT count(*) FROM metrics WHERE value IS NULL"),
                         1);
        assert_int_equal(test_store_number(t, "SELECT step FROM metrics WHERE value = 1.5"), 3);
        assert_int_equal(test_store_number(t, "SELECT count(*) FROM events WHERE node = 0"), 4);
        assert_int_equal(test_store_number(t, "SELECT count(*) FROM checkpoints"),
                         0); /* missing here */
        assert_int_equal(test_store_number(t, "SELECT pid FROM ranks WHERE state = 'exited'"), 77);
        assert_good(t, dt_fill_run(&filled, t->store, "aa", true, &t->err));
        assert_int_equal(filled, 0);
    }
    assert_int_equal(count_gaps(t), 1);
    assert_good(t,
                dt_store_metric_mend(
                    t->store, "aa",
                    &(dt_metric){.attempt = 1, .step = 3, .time_ms = 4, .name = "loss", .value = 7},
                    &t->err));
    assert_good(t, dt_fill_missing_of(&missing, t->store, "aa", 1, 0, &t->err));
    assert_int_equal(missing, 1);
    assert_good(t, dt_fill_run(&filled, t->store, "aa", false, &t->err));
    assert_int_equal(filled, 1);
    assert_int_equal(test_store_number(t, "SELECT step FROM metrics WHERE value = 1.5"), 3);
}

static void test_an_empty_folder_changes_nothing(void **state)
{
    test_store *t = *state;
    bool rebuilt;

    put(t, "attempt-1/plan.json", "{}");
    assert_false(rebuild(t));
    put(t, "attempt-1/history.json", "{");
    assert_fails(t, dt_rebuild_run(&rebuilt, t->store, "aa", &t->err), DT_ERR_CORRUPT,
                 "cannot restore run");
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM runs"), 0);
}

static void set_node(test_store *t, int64_t attempt, int64_t number, const char *name,
                     const char *state)
{
    const dt_node node = {.node = number, .name = name, .state = state, .acknowledged = 9};

    assert_good(t, dt_store_node_set(t->store, "aa", attempt, &node, &t->err));
}

/* Amends the ends of the run and expects this exit code and reason of attempt 2. */
static void expect_end(test_store *t, int code, const char *reason)
{
    dt_attempt *attempts;
    int64_t count;

    assert_good(t, dt_run_amend_end(t->store, "aa", &t->arena, &t->err));
    assert_good(t, dt_store_attempt_list(t->store, &attempts, &count, "aa", &t->arena, &t->err));
    assert_int_equal(attempts[1].exit_code, code);
    assert_string_equal(attempts[1].reason, reason);
}

/* Attempt 1 ran on a and b; attempt 2, after b was lost, on a and c. */
static void test_an_end_is_proved_once_all_nodes_of_all_attempts_are_released(void **state)
{
    const char *doubt = "rank 1 was killed; " DT_REASON_UNKNOWN "b (lost)";
    test_store *t = *state;

    keep(t, 1, DT_RUN_FAILED, 5);
    keep(t, 2, DT_RUN_FAILED, 10);
    assert_true(rebuild(t));
    set_node(t, 1, 1, "b", "lost");
    set_node(t, 2, 1, "c", "lost");
    assert_good(t, dt_store_attempt_amend(t->store, "aa", 2, DT_EXIT_LEFT, doubt, &t->err));
    expect_end(t, DT_EXIT_LEFT, doubt);
    set_node(t, 2, 1, "c", "released");
    expect_end(t, DT_EXIT_LEFT, doubt); /* b is missing in attempt 2, and still lost */
    set_node(t, 1, 1, "b", "released");
    expect_end(t, DT_EXIT_FAILED, "rank 1 was killed; " DT_REASON_PROVED);
    assert_int_equal(find(t).exit_code, DT_EXIT_FAILED);
}

static void test_a_release_in_a_later_attempt_proves_the_node_of_an_earlier_one(void **state)
{
    test_store *t = *state;

    keep(t, 1, DT_RUN_FAILED, 5);
    keep(t, 2, DT_RUN_STOPPED, 10);
    assert_true(rebuild(t));
    set_node(t, 1, 1, "b", "lost");
    set_node(t, 2, 1, "b", "released");
    assert_good(t, dt_store_attempt_amend(t->store, "aa", 2, DT_EXIT_LEFT,
                                          "stopped; " DT_REASON_LEFT "b", &t->err));
    expect_end(t, DT_EXIT_STOPPED, "stopped; " DT_REASON_PROVED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, test_store_setup, test_store_teardown)

/* The first lines of a record tell that an attempt goes on; a record that they tell nothing about may have ended. */
static void test_the_first_lines_tell_whether_an_attempt_goes_on(void **state)
{
    test_store *t = *state;

    for (int one = 0; one < DT_RUN_STATE_COUNT; one++) {
        keep(t, 1, (dt_run_state)one, 5);
        assert_int_equal(dt_attempt_record_may_have_ended(folder_of(t), 1),
                         dt_run_state_is_terminal((dt_run_state)one));
    }
    put(t, "attempt-1/history.json",
        "{\n  \"name\": \"\\n  \\\"state\\\": \\\"running\\\"\"\n}");
    assert_true(dt_attempt_record_may_have_ended(folder_of(t), 1));
    put(t, "attempt-1/history.json", "");
    assert_true(dt_attempt_record_may_have_ended(folder_of(t), 1));
    assert_true(dt_attempt_record_may_have_ended(folder_of(t), 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_run_that_the_store_lacks_is_there_again),
        TEST(test_an_active_run_continues),
        TEST(test_nodes_of_an_attempt_whose_end_is_not_known_are_lost),
        TEST(test_one_whose_nodes_were_begun_is_followed),
        TEST(test_one_that_ran_is_running),
        TEST(test_a_stop_that_was_asked_for_is_not_forgotten),
        TEST(test_an_older_store_is_brought_forward),
        TEST(test_the_first_lines_tell_whether_an_attempt_goes_on),
        TEST(test_attempts_of_which_nothing_is_known_keep_their_numbers),
        TEST(test_what_a_newer_dtrun_kept_is_left_alone),
        TEST(test_an_end_that_an_older_store_does_not_know),
        TEST(test_a_store_that_lacks_only_the_end_is_not_an_older_copy),
        TEST(test_a_store_that_lacks_events_of_one_node_is_an_older_one),
        TEST(test_checkpoints_of_the_folder_are_known_again),
        TEST(test_journals_of_an_attempt_that_ended_give_their_rows_once),
        TEST(test_an_empty_folder_changes_nothing),
        TEST(test_an_end_is_proved_once_all_nodes_of_all_attempts_are_released),
        TEST(test_a_release_in_a_later_attempt_proves_the_node_of_an_earlier_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
