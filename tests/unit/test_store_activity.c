/* activity: the words for what a run and its ranks do. */
#include <string.h>

#include "store_support.h"

#include "base/strbuf.h"
#include "store/activity.h"

static const char away_state[] = "not reachable (connect to host b port 22: No route to host)";

/* Returns the state of a node by a letter. */
static const char *state_of(char letter)
{
    return letter == 'R'   ? "running"
           : letter == 'A' ? away_state
           : letter == 'L' ? "lost"
           : letter == 'C' ? "connecting"
                           : "ready";
}

typedef struct activity_case {
    dt_run_state state;
    int64_t attempt;
    const char *nodes, *ending; /* states of the nodes a, b, c as letters */
    int64_t silent_ms, usual_ms;
    const char *words, *ranks; /* words for one rank on each node, all in state ready */
    bool steps;
} activity_case;

static void test_a_run_waits_for_a_node_only_without_steps(void **state)
{
    static const char restarting[] = DT_EVENT_RESTARTING, failing[] = DT_EVENT_FAILING;
    static const activity_case cases[] = {
        {DT_RUN_RUNNING, 1, "RR", "", 100, 50, "running", "training, training", true},
        {DT_RUN_RUNNING, 1, "RR", "", 90000, 50, "running", "training, training", true},
        {DT_RUN_RUNNING, 1, "RA", "", 8000, 50, "waiting for b", "waiting, not responding", false},
        {DT_RUN_RUNNING, 1, "AR", "", 8000, 50, "waiting for a", "not responding, running", false},
        {DT_RUN_RUNNING, 1, "RA", "", 300, 250, "running", "training, training", true},
        {DT_RUN_RUNNING, 1, "RA", "", 30000, 20000, "running", "training, training", true},
        {DT_RUN_RUNNING, 1, "RAA", "", 8000, 50, "waiting for 2 nodes",
         "waiting, not responding, not responding", false},
        {DT_RUN_STOPPING, 1, "RL", restarting, 0, 0, "restarting", "stopping, not responding",
         false},
        {DT_RUN_STOPPING, 1, "RR", failing, 0, 0, "failing", "stopping, stopping", false},
        {DT_RUN_STOPPING, 1, "RR", "", 0, 0, "stopping", "stopping, stopping", false},
        {DT_RUN_PREPARING, 1, "KC", "", 0, 0, "preparing", "ready, ready", false},
        {DT_RUN_PREPARING, 2, "KC", "", 0, 0, "waiting for b", "ready, ready", false},
        {DT_RUN_PREPARING, 2, "CC", "", 0, 0, "preparing", "ready, ready", false},
        {DT_RUN_PREPARING, 2, "KA", "", 0, 0, "waiting for b", "ready, not responding", false},
        {DT_RUN_FAILED, 1, "RA", "", 8000, 50, "failed", "ready, not responding", false},
    };
    static const char *const names[] = {"a", "b", "c"};
    test_store *t = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const dt_run run = {.state = cases[i].state,
                            .attempt = cases[i].attempt,
                            .first_step_ms = 1,
                            .recipe_json = "{}"};
        const dt_rank rank = {.state = "ready"};
        dt_node nodes[3];
        dt_activity_facts facts = {.run = &run,
                                   .nodes = nodes,
                                   .nodes_count = (int64_t)strlen(cases[i].nodes),
                                   .ending = cases[i].ending,
                                   .silent_ms = cases[i].silent_ms,
                                   .usual_ms = cases[i].usual_ms};
        dt_activity activity;
        dt_strbuf ranks;

        for (int64_t n = 0; n < facts.nodes_count; n++)
            nodes[n] = (dt_node){.node = n, .name = names[n], .state = state_of(cases[i].nodes[n])};
        dt_activity_of(&activity, &facts, &t->arena);
        dt_strbuf_init(&ranks);
        for (int64_t n = 0; n < facts.nodes_count; n++)
            dt_strbuf_add_fmt(&ranks, "%s%s", n > 0 ? ", " : "",
                              dt_activity_of_rank(&activity, &nodes[n], &rank));
        if (strcmp(activity.words, cases[i].words) != 0 ||
            strcmp(ranks.data, cases[i].ranks) != 0 || activity.steps != cases[i].steps)
            fail_msg("case %zu: '%s', ranks '%s', steps %d", i, activity.words, ranks.data,
                     activity.steps);
        dt_strbuf_release(&ranks);
    }
}

static void test_a_rank_that_a_stop_killed_did_not_fail(void **state)
{
    static const struct {
        dt_run_state state;
        const char *words;
    } cases[] = {
        {DT_RUN_STOPPED, "stopped"}, {DT_RUN_FAILED, "failed"}, {DT_RUN_STOPPING, "failed"}};
    const dt_node node = {.name = "a", .state = "released"};
    const dt_rank rank = {.state = "failed", .exit_signal = 9};
    test_store *t = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const dt_run run = {.state = cases[i].state, .recipe_json = "{}"};
        const dt_activity_facts facts = {
            .run = &run, .nodes = &node, .nodes_count = 1, .ending = ""};
        dt_activity activity;

        dt_activity_of(&activity, &facts, &t->arena);
        assert_string_equal(dt_activity_of_rank(&activity, &node, &rank), cases[i].words);
    }
}

static void test_ranks_of_a_task_do_not_train(void **state)
{
    const dt_run run = {
        .state = DT_RUN_RUNNING, .first_step_ms = 1, .recipe_json = "{\"task\":\"score\"}"};
    const dt_activity_facts facts = {.run = &run, .ending = ""};
    test_store *t = *state;
    dt_activity activity;

    dt_activity_of(&activity, &facts, &t->arena);
    assert_string_equal(activity.ready, "running");
}

static const char *words_at(test_store *t, int64_t now_ms, bool *steps)
{
    dt_activity activity;
    dt_run run;

    assert_good(t, dt_store_run_find(t->store, &run, "r", &t->arena, &t->err));
    assert_good(t, dt_activity_read(&activity, t->store, &run, now_ms, &t->arena, &t->err));
    *steps = activity.steps;
    return activity.words;
}

static void note(test_store *t, const char *kind)
{
    const dt_store_event event = {.attempt = 1,
                                  .node = -1,
                                  .sequence = -1,
                                  .rank = -1,
                                  .time_ms = 1,
                                  .kind = kind,
                                  .json = "{}"};

    assert_good(t, dt_store_event_add(t->store, "r", &event, &t->err));
}

static void test_rows_give_the_last_step_time_and_the_reason_of_the_end(void **state)
{
    const dt_node a = {.node = 0, .name = "a", .state = "running"};
    const dt_node b = {.node = 1, .name = "b", .state = away_state};
    test_store *t = *state;
    bool steps;

    test_store_run(t, "r", "r");
    assert_good(t, dt_store_node_set(t->store, "r", 1, &a, &t->err));
    assert_good(t, dt_store_node_set(t->store, "r", 1, &b, &t->err));
    assert_good(t, dt_store_run_set_state(t->store, "r", DT_RUN_RUNNING, -1, "", 1000, &t->err));
    for (int64_t step = 1; step <= 5; step++)
        assert_good(t, dt_store_metric_add(t->store, "r", 1, step, "loss", 1.0, 2000 + step * 3000,
                                           &t->err));
    assert_good(t, dt_store_run_set_progress(t->store, "r", 5, 1.0, 1.0, 10.0, 17000, &t->err));
    assert_string_equal(words_at(t, 17000 + 5900, &steps), "running"); /* a step takes 3 s */
    assert_true(steps);
    assert_string_equal(words_at(t, 17000 + 6100, &steps), "waiting for b");
    assert_false(steps);

    assert_good(t, dt_store_run_set_state(t->store, "r", DT_RUN_STOPPING, -1, "", 24000, &t->err));
    assert_string_equal(words_at(t, 25000, &steps), "stopping");
    note(t, DT_EVENT_RESTARTING);
    assert_string_equal(words_at(t, 25000, &steps), "restarting");
    note(t, "stop"); /* a person requested a stop during the restart */
    assert_string_equal(words_at(t, 25000, &steps), "stopping");
}

/* A resume from step 10 undoes points above the current step; a fork has points of its parent. */
static void test_only_points_of_the_attempt_itself_count(void **state)
{
    const dt_node b = {.node = 1, .name = "b", .state = away_state};
    test_store *t = *state;
    int64_t attempt;
    bool steps;

    test_store_run(t, "r", "r");
    for (int64_t step = 1; step <= 90; step++)
        assert_good(t,
                    dt_store_metric_add(t->store, "r", 1, step, "loss", 1.0, step * 10, &t->err));
    assert_good(t, dt_store_run_set_state(t->store, "r", DT_RUN_FAILED, 1, "", 1000, &t->err));
    assert_good(t,
                dt_store_attempt_add(t->store, "r", 10, 100, "{}", "h", 2000, &attempt, &t->err));
    assert_good(t, dt_store_node_set(t->store, "r", 2, &b, &t->err));
    assert_good(t, dt_store_run_set_state(t->store, "r", DT_RUN_RUNNING, -1, "", 3000, &t->err));
    for (int64_t step = 11; step <= 13; step++)
        assert_good(t, dt_store_metric_add(t->store, "r", 2, step, "loss", 1.0, 4000 + step * 3000,
                                           &t->err));
    assert_good(t, dt_store_run_set_progress(t->store, "r", 13, 1.0, 1.0, 10.0, 43000, &t->err));
    assert_string_equal(words_at(t, 43000 + 5900, &steps), "running"); /* a step takes 3 s */
    assert_true(steps);
    assert_string_equal(words_at(t, 43000 + 6100, &steps), "waiting for b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_run_waits_for_a_node_only_without_steps,
                                        test_store_setup, test_store_teardown),
        cmocka_unit_test_setup_teardown(test_a_rank_that_a_stop_killed_did_not_fail,
                                        test_store_setup, test_store_teardown),
        cmocka_unit_test_setup_teardown(test_ranks_of_a_task_do_not_train, test_store_setup,
                                        test_store_teardown),
        cmocka_unit_test_setup_teardown(test_rows_give_the_last_step_time_and_the_reason_of_the_end,
                                        test_store_setup, test_store_teardown),
        cmocka_unit_test_setup_teardown(test_only_points_of_the_attempt_itself_count,
                                        test_store_setup, test_store_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
