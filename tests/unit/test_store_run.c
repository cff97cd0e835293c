#include "store_support.h"

#include <math.h>
#include <string.h>

static void test_a_new_run_is_queued_and_keeps_what_it_was_given(void **state)
{
    test_store *t = *state;
    dt_run run = {.id = "k3v9x2",
                  .name = "shakespeare",
                  .created_ms = 1763718600123,
                  .steps_total = 2000,
                  .recipe_path = "/a/b.yaml",
                  .recipe_text = "name: \xc3\xa9t\xc3\xa9\n",
                  .recipe_json = "{\"name\":1}",
                  .recipe_hash = "abc"};
    dt_run got;

    assert_good(t, dt_store_run_add(t->store, &run, &t->err));
    test_store_reopen(t);
    assert_good(t, dt_store_run_find(t->store, &got, "k3v9x2", &t->arena, &t->err));
    assert_string_equal(got.id, "k3v9x2");
    assert_string_equal(got.name, "shakespeare");
    assert_int_equal(got.state, DT_RUN_QUEUED);
    assert_int_equal(got.attempt, 1);
    assert_int_equal(got.created_ms, 1763718600123);
    assert_int_equal(got.started_ms, 0);
    assert_int_equal(got.ended_ms, 0);
    assert_int_equal(got.first_step_ms, 0);
    assert_int_equal(got.step, 0);
    assert_int_equal(got.steps_total, 2000);
    assert_true(isnan(got.loss) && isnan(got.valid_loss) && isnan(got.tokens_per_second));
    assert_string_equal(got.recipe_path, "/a/b.yaml");
    assert_string_equal(got.recipe_text, "name: \xc3\xa9t\xc3\xa9\n");
    assert_string_equal(got.recipe_json, "{\"name\":1}");
    assert_string_equal(got.recipe_hash, "abc");
    assert_int_equal(got.exit_code, -1);
    assert_string_equal(got.reason, "");
}

static void test_an_id_is_used_once(void **state)
{
    test_store *t = *state;
    dt_run run = {.id = "aa", .name = "again"};

    test_store_run(t, "aa", "first");
    assert_fails(t, dt_store_run_add(t->store, &run, &t->err), DT_ERR_BUSY, "exists already");
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM runs"), 1);
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM attempts"), 1);
}

static void assert_finds(test_store *t, const char *ref, const char *id)
{
    dt_run run;

    assert_good(t, dt_store_run_find(t->store, &run, ref, &t->arena, &t->err));
    assert_string_equal(run.id, id);
}

static void test_a_run_is_found_by_id_last_name_and_unique_prefix(void **state)
{
    test_store *t = *state;
    dt_run run;

    assert_fails(t, dt_store_run_find(t->store, &run, "last", &t->arena, &t->err), DT_ERR_NOT_FOUND,
                 "no runs yet");
    test_store_run(t, "abc123", "one");
    test_store_run(t, "abc145", "two");
    test_store_run(t, "xyz789", "one");
    test_store_run(t, "two", "three");

    assert_finds(t, "abc123", "abc123");
    assert_finds(t, "abc12", "abc123");
    assert_finds(t, "xyz7", "xyz789");
    assert_finds(t, "one", "xyz789"); /* the newest run of that name */
    assert_finds(t, "two", "two");    /* an id before a name */
    assert_finds(t, "last", "two");
    assert_fails(t, dt_store_run_find(t->store, &run, "abc1", &t->arena, &t->err), DT_ERR_USAGE,
                 "abc145 (two), abc123 (one)");
    /* too short for the beginning of an id, even of one run */
    assert_fails(t, dt_store_run_find(t->store, &run, "xyz", &t->arena, &t->err), DT_ERR_NOT_FOUND,
                 "needs at least 4 characters");
    assert_fails(t, dt_store_run_find(t->store, &run, "q", &t->arena, &t->err), DT_ERR_NOT_FOUND,
                 "unknown run 'q'");
    assert_fails(t, dt_store_run_find(t->store, &run, "", &t->arena, &t->err), DT_ERR_USAGE,
                 "is empty");
}

static void test_a_name_is_found_although_it_begins_an_id(void **state)
{
    test_store *t = *state;

    test_store_run(t, "gpt111", "small");
    test_store_run(t, "aaa111", "gpt");
    assert_finds(t, "gpt", "aaa111");
    assert_finds(t, "gpt1", "gpt111");
}

static void test_wildcards_of_sql_are_ordinary_characters(void **state)
{
    test_store *t = *state;
    const char *refs[] = {"%", "_", "*", "a%", "' OR 1=1 --", "ab\"", "\xff\xfe"};
    dt_run run;

    test_store_run(t, "abc", "n'a\"me");
    for (size_t i = 0; i < sizeof(refs) / sizeof(refs[0]); i++)
        assert_fails(t, dt_store_run_find(t->store, &run, refs[i], &t->arena, &t->err),
                     DT_ERR_NOT_FOUND, "unknown run");
    assert_finds(t, "n'a\"me", "abc");
}

static void test_an_ambiguous_prefix_names_only_some_of_many(void **state)
{
    test_store *t = *state;
    char id[] = "runs00";
    dt_run run;

    for (int i = 0; i < 12; i++) {
        id[4] = (char)('0' + i / 10);
        id[5] = (char)('0' + i % 10);
        test_store_run(t, id, "n");
    }
    assert_fails(t, dt_store_run_find(t->store, &run, "runs", &t->arena, &t->err), DT_ERR_USAGE,
                 "12 runs begin with it: runs11 (n)");
    assert_fails(t, dt_store_run_find(t->store, &run, "runs", &t->arena, &t->err), DT_ERR_USAGE,
                 ", ...");
}

static void test_runs_are_listed_newest_first_by_state_and_limit(void **state)
{
    test_store *t = *state;
    int64_t count;
    dt_run *runs;

    assert_good(t, dt_store_run_list(t->store, &runs, &count, -1, 0, &t->arena, &t->err));
    assert_int_equal(count, 0);
    for (int i = 0; i < 40; i++) {
        char id[] = {'r', (char)('a' + i / 26), (char)('a' + i % 26), '\0'};
        test_store_run(t, id, "n");
    }
    assert_good(t, dt_store_run_set_state(t->store, "rab", DT_RUN_RUNNING, -1, "", 5, &t->err));

    assert_good(t, dt_store_run_list(t->store, &runs, &count, -1, 0, &t->arena, &t->err));
    assert_int_equal(count, 40);
    assert_string_equal(runs[0].id, "rbn");
    assert_string_equal(runs[39].id, "raa");
    assert_good(t, dt_store_run_list(t->store, &runs, &count, -1, 3, &t->arena, &t->err));
    assert_int_equal(count, 3);
    assert_string_equal(runs[2].id, "rbl");
    assert_good(t,
                dt_store_run_list(t->store, &runs, &count, DT_RUN_RUNNING, 0, &t->arena, &t->err));
    assert_int_equal(count, 1);
    assert_string_equal(runs[0].id, "rab");
}

static void test_progress_leaves_alone_what_is_not_a_number(void **state)
{
    test_store *t = *state;
    dt_run run;

    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_run_set_progress(t->store, "aa", 10, 2.5, NAN, 900, 7000, &t->err));
    assert_good(t, dt_store_run_set_progress(t->store, "aa", 10, NAN, 2.75, NAN, 8000, &t->err));
    assert_good(t, dt_store_run_find(t->store, &run, "aa", &t->arena, &t->err));
    assert_int_equal(run.step, 10);
    assert_true(run.loss == 2.5 && run.valid_loss == 2.75 && run.tokens_per_second == 900);
    assert_int_equal(run.first_step_ms, 7000); /* of the first report; it stays */
    assert_fails(t, dt_store_run_set_progress(t->store, "zz", 1, 1, 1, 1, 1, &t->err),
                 DT_ERR_NOT_FOUND, "'zz'");
}

static void test_every_state_has_a_name_that_is_read_back(void **state)
{
    dt_run_state got;

    for (int i = 0; i < DT_RUN_STATE_COUNT; i++) {
        assert_true(dt_run_state_parse(&got, dt_run_state_name((dt_run_state)i)));
        assert_int_equal(got, i);
        assert_int_equal(dt_run_state_is_terminal(got), i >= DT_RUN_FINISHED);
    }
    assert_false(dt_run_state_parse(&got, "RUNNING"));
    assert_false(dt_run_state_parse(&got, ""));
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, test_store_setup, test_store_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(test_a_new_run_is_queued_and_keeps_what_it_was_given),
        WITH_STORE(test_an_id_is_used_once),
        WITH_STORE(test_a_run_is_found_by_id_last_name_and_unique_prefix),
        WITH_STORE(test_a_name_is_found_although_it_begins_an_id),
        WITH_STORE(test_wildcards_of_sql_are_ordinary_characters),
        WITH_STORE(test_an_ambiguous_prefix_names_only_some_of_many),
        WITH_STORE(test_runs_are_listed_newest_first_by_state_and_limit),
        WITH_STORE(test_progress_leaves_alone_what_is_not_a_number),
        cmocka_unit_test(test_every_state_has_a_name_that_is_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
