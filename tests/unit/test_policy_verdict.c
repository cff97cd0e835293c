#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runner/supervisor/policy/verdict.h"

#define WORLD_SIZE 4

typedef struct expected {
    dt_run_state state;
    int code;
    const char *reason;
} expected;

static void see(dt_verdict *verdict, const char *node, const char *line)
{
    dt_error err = DT_ERROR_INIT;
    dt_message message;

    if (dt_message_parse(&message, line, strlen(line), WORLD_SIZE, &err) != DT_OK)
        fail_msg("%s", err.message);
    dt_verdict_see(verdict, &message, node);
    dt_message_release(&message);
}

/* Checks the verdict after the lines of node a; `lines` ends with NULL. */
static void check_asked(bool stop_asked, bool stop_now, const char *const *lines, expected wanted)
{
    const char *reason;
    dt_verdict verdict;
    dt_run_state state;
    int code;

    dt_verdict_init(&verdict, WORLD_SIZE);
    verdict.stop_asked = stop_asked;
    verdict.stop_now = stop_now;
    for (; *lines != NULL; lines++)
        see(&verdict, "a", *lines);
    dt_verdict_give(&verdict, &state, &code, &reason);
    assert_int_equal(state, wanted.state);
    assert_int_equal(code, wanted.code);
    assert_string_equal(reason, wanted.reason);
    dt_verdict_release(&verdict);
}

static void check(bool stop_asked, const char *const *lines, expected wanted)
{
    check_asked(stop_asked, false, lines, wanted);
}

static void check_now(const char *const *lines, expected wanted)
{
    check_asked(true, true, lines, wanted);
}

#define KILLED(rank, time)                                                                \
    "{\"event\":\"exited\",\"rank\":" rank ",\"code\":null,\"signal\":9,\"signal_name\":" \
    "\"SIGKILL\",\"reason\":\"killed\",\"lines\":[],\"sequence\":1,\"time_ms\":" time "}"
#define EXITED(rank, code, reason, time)                         \
    "{\"event\":\"exited\",\"rank\":" rank ",\"code\":" code     \
    ",\"signal\":null,\"signal_name\":\"\",\"reason\":\"" reason \
    "\",\"lines\":[],\"sequence\":1,\"time_ms\":" time "}"
#define FAILED(rank, status, message)                                                          \
    "{\"event\":\"failed\",\"rank\":" rank ",\"status\":\"" status "\",\"message\":\"" message \
    "\",\"sequence\":1,\"time_ms\":1}"
#define FINISHED(reason)                                                 \
    "{\"event\":\"finished\",\"rank\":0,\"step\":9,\"reason\":\"" reason \
    "\",\"sequence\":1,\"time_ms\":1}"
#define SIGNALLED(rank, told)                \
    "{\"event\":\"finished\",\"rank\":" rank \
    ",\"step\":9,\"reason\":\"stopped\",\"signalled\":" told ",\"sequence\":1,\"time_ms\":1}"
#define RELEASED(left) "{\"event\":\"released\",\"left\":[" left "],\"sequence\":1,\"time_ms\":9}"

#define ENDED(rank, time, suspicion, words, quiet)                                             \
    "{\"event\":\"exited\",\"rank\":" rank ",\"code\":null,\"signal\":15,\"signal_name\":"     \
    "\"SIGTERM\",\"reason\":\"peer_failed\",\"lines\":[],\"before\":{\"suspicion\":" suspicion \
    ",\"words\":\"" words "\",\"wchan\":\"\",\"quiet_seconds\":" quiet                         \
    "},\"sequence\":1,\"time_ms\":" time "}"

/* A rank that ends well before others fail of it is the cause, unless one of them has an error of its own. */
static void test_a_rank_that_ended_early_is_the_cause(void **state)
{
    const char *const early[] = {EXITED("1", "0", "", "43203000"),
                                 FAILED("0", "peer", "Connection closed by peer"),
                                 EXITED("0", "1", "failed", "43204000"), NULL};
    const char *const later[] = {FAILED("0", "peer", "Connection closed by peer"),
                                 EXITED("0", "1", "failed", "43202000"),
                                 EXITED("1", "0", "", "43203000"), NULL};
    const char *const asked[] = {FAILED("0", "peer", "Connection closed by peer"),
                                 EXITED("1", "0", "stopped", "43203000"),
                                 EXITED("0", "1", "failed", "43204000"), NULL};
    const char *const own[] = {EXITED("1", "0", "", "43203000"), FAILED("0", "io", "ValueError: x"),
                               EXITED("0", "1", "failed", "43204000"), NULL};

    check(false, early,
          (expected){
              DT_RUN_FAILED, 1,
              "rank 1 on a ended with code 0 at 12:00:03Z, before the others; then rank 0 on a "
              "exited with code 1: Connection closed by peer"});
    check(
        false, later,
        (expected){DT_RUN_FAILED, 1, "rank 0 on a exited with code 1: Connection closed by peer"});
    check(
        false, asked,
        (expected){DT_RUN_FAILED, 1, "rank 0 on a exited with code 1: Connection closed by peer"});
    check(false, own,
          (expected){DT_RUN_FAILED, 1, "rank 0 on a exited with code 1: ValueError: x"});
}

/* The others wait for it until they count as hanging. */
static void test_a_rank_that_ended_early_is_named_before_a_hang(void **state)
{
    const char *reason;
    dt_verdict verdict;
    dt_run_state run_state;
    int code;

    dt_verdict_init(&verdict, WORLD_SIZE);
    see(&verdict, "a", EXITED("1", "0", "", "43203000"));
    dt_verdict_hung(&verdict, "the program hangs: rank 0 on a slept", 43213000);
    see(&verdict, "a", ENDED("0", "43214000", "2", "slept", "12.0"));
    dt_verdict_give(&verdict, &run_state, &code, &reason);
    assert_int_equal(run_state, DT_RUN_FAILED);
    assert_string_equal(reason,
                        "rank 1 on a ended with code 0 at 12:00:03Z, before the others; then "
                        "the program hangs: rank 0 on a slept");
    dt_verdict_release(&verdict);
}

/* Of the ranks that were ended after a time-out, the most suspicious one is named. */
static void test_a_rank_that_others_waited_for_is_named(void **state)
{
    const char *const sleeps[] = {
        FAILED("0", "peer", "Timed out waiting 15000ms"), EXITED("0", "1", "failed", "5"),
        ENDED("1", "6", "0", "waited", "14.0"),           ENDED("2", "6", "2", "slept", "12.0"),
        ENDED("3", "6", "1", "computed", "0.0"),          NULL};
    const char *const died[] = {FAILED("0", "peer", "Connection closed by peer"),
                                EXITED("0", "1", "failed", "5"),
                                ENDED("2", "6", "2", "slept", "12.0"), NULL};
    const char *const all_wait[] = {FAILED("0", "peer", "Timed out waiting 15000ms"),
                                    EXITED("0", "1", "failed", "5"),
                                    ENDED("1", "6", "0", "waited", "14.0"), NULL};

    check(false, sleeps,
          (expected){DT_RUN_FAILED, 1,
                     "rank 2 on a slept, for 12 s without processor time and output, while the "
                     "others waited for it; then rank 0 on a exited with code 1: Timed out waiting "
                     "15000ms"});
    check(
        false, died,
        (expected){DT_RUN_FAILED, 1, "rank 0 on a exited with code 1: Connection closed by peer"});
    check(
        false, all_wait,
        (expected){DT_RUN_FAILED, 1, "rank 0 on a exited with code 1: Timed out waiting 15000ms"});
}

static void test_all_steps_are_done(void **state)
{
    const char *const lines[] = {FINISHED("steps"), EXITED("0", "0", "", "5"), RELEASED(""), NULL};

    check(false, lines, (expected){DT_RUN_FINISHED, 0, ""});
    check(true, lines, (expected){DT_RUN_FINISHED, 0, ""}); /* the stop came too late */
}

static void test_the_first_cause_is_not_the_first_to_arrive(void **state)
{
    const char *const lines[] = {FAILED("0", "peer", "connection closed"),
                                 EXITED("0", "1", "failed", "10"),
                                 EXITED("3", "1", "peer_failed", "5"), KILLED("2", "11"), NULL};
    const char *const two[] = {KILLED("2", "11"), KILLED("1", "10"), NULL};

    check(false, lines,
          (expected){DT_RUN_FAILED, 1, "rank 2 on a was killed by signal 9 (SIGKILL)"});
    check(false, two, (expected){DT_RUN_FAILED, 1, "rank 1 on a was killed by signal 9 (SIGKILL)"});
}

static void test_the_message_of_the_rank_is_the_reason(void **state)
{
    const char *const lines[] = {FAILED("1", "io", "cannot read 'x'"),
                                 EXITED("1", "1", "failed", "5"), NULL};

    check(false, lines,
          (expected){DT_RUN_FAILED, 1, "rank 1 on a exited with code 1: cannot read 'x'"});
}

static void test_a_lost_agent_is_the_systems_failure(void **state)
{
    const char *const lines[] = {EXITED("1", "null", "agent_lost", "5"), NULL};

    check(
        false, lines,
        (expected){DT_RUN_FAILED, 3, "rank 1 on a was stopped because the dtrun agent on a died"});
}

static void test_a_rebooted_node_is_the_systems_failure(void **state)
{
    const char *const lines[] = {EXITED("1", "null", "rebooted", "5"), RELEASED(""), NULL};

    check(false, lines, (expected){DT_RUN_FAILED, 3, "node a was rebooted"});
}

static void test_a_stop_is_distinguished_from_a_failure(void **state)
{
    const char *const good[] = {FINISHED("stopped"), EXITED("0", "0", "", "5"), NULL};
    const char *const killed[] = {
        "{\"event\":\"exited\",\"rank\":1,\"code\":null,\"signal\":9,\"signal_name\":\"SIGKILL\","
        "\"reason\":\"stopped\",\"lines\":[],\"sequence\":1,\"time_ms\":2}",
        NULL};
    const char *const one[] = {SIGNALLED("0", "false"), SIGNALLED("1", "true"), NULL};
    const char *const two[] = {SIGNALLED("0", "true"), SIGNALLED("1", "true"), NULL};
    const char *const before[] = {KILLED("1", "5"), NULL};
    const char *const nothing[] = {RELEASED(""), NULL};

    check(true, good, (expected){DT_RUN_STOPPED, 4, "stopped by request"});
    check(true, killed,
          (expected){DT_RUN_STOPPED, 4,
                     "stopped by request; it did not exit cleanly: rank 1 on a was killed by "
                     "signal 9 (SIGKILL)"});
    check(true, before,
          (expected){DT_RUN_FAILED, 1, "rank 1 on a was killed by signal 9 (SIGKILL)"});
    check(true, nothing, (expected){DT_RUN_STOPPED, 4, "stopped by request"});
    check(
        false, good,
        (expected){DT_RUN_STOPPED, 4, "the ranks received a stop signal that dtrun did not send"});
    check(false, one,
          (expected){DT_RUN_STOPPED, 4,
                     "rank 1 on a received a stop signal that dtrun did not send"});
    check(false, two,
          (expected){DT_RUN_STOPPED, 4,
                     "rank 0 on a and 1 other received a stop signal that dtrun did not send"});
}

static void test_a_stop_at_once_kills_and_ends_events(void **state)
{
    const char *const lines[] = {EXITED("0", "null", "stopped", "2"), RELEASED(""), NULL};
    const char *const left[] = {EXITED("0", "null", "stopped", "2"),
                                RELEASED("{\"pid\":12,\"command\":\"python3\"}"), NULL};

    check_now(lines, (expected){DT_RUN_STOPPED, 4, "stopped by request (--now)"});
    check_now(left, (expected){DT_RUN_STOPPED, 5,
                               "stopped by request (--now); not released: python3 on a (pid 12)"});
}

static void test_processes_that_are_left_have_an_exit_code_of_their_own(void **state)
{
    const char *const lines[] = {FINISHED("stopped"), EXITED("0", "0", "", "5"),
                                 RELEASED("{\"pid\":12,\"command\":\"python3\"}"), NULL};

    check(true, lines,
          (expected){DT_RUN_STOPPED, 5, "stopped by request; not released: python3 on a (pid 12)"});
}

#define DEVICES(baseline, used)                                                                  \
    "{\"event\":\"released\",\"left\":[],\"devices\":[{\"index\":1,\"baseline_bytes\":" baseline \
    ",\"used_bytes\":" used "}],\"sequence\":1,\"time_ms\":9}"

static void test_unreleased_device_memory_is_reported_as_left(void **state)
{
    const char *const held[] = {FINISHED("steps"), DEVICES("1048576", "2148532224"), NULL};
    const char *const back[] = {FINISHED("steps"), DEVICES("1048576", "537919488"), NULL};

    check(false, held, (expected){DT_RUN_FINISHED, 5, "not released: 2048 MiB of GPU 1 on a"});
    check(false, back, (expected){DT_RUN_FINISHED, 0, ""});
}

static void test_a_time_limit_and_a_lost_launcher_are_stops_of_their_own(void **state)
{
    const char *const limit[] = {FINISHED("time_limit"), EXITED("0", "0", "", "5"), NULL};
    const char *const lost[] = {
        "{\"event\":\"stopping\",\"grace_seconds\":30,\"reason\":\"launcher_lost\",\"sequence\":1,"
        "\"time_ms\":1}",
        EXITED("1", "null", "launcher_lost", "5"), NULL};

    check(false, limit, (expected){DT_RUN_STOPPED, 124, "time_limit reached"});
    check(false, lost,
          (expected){DT_RUN_STOPPED, 4,
                     "stopped by its nodes: no contact with the launch machine "
                     "(failure.launcher_lost)"});
}

static void test_the_kernels_words_are_part_of_the_reason(void **state)
{
    const char *const lines[] = {
        "{\"event\":\"exited\",\"rank\":1,\"code\":null,\"signal\":9,\"signal_name\":\"SIGKILL\","
        "\"words\":\"killed by signal 9 (SIGKILL, Killed): the node is out of memory\","
        "\"reason\":\"killed\",\"kernel_lines\":[\"Out of memory: Killed process 7\"],\"lines\":[],"
        "\"sequence\":1,\"time_ms\":2}",
        NULL};

    check(false, lines,
          (expected){DT_RUN_FAILED, 1,
                     "rank 1 on a was killed by signal 9 (SIGKILL): the node is out of memory; "
                     "kernel log: Out of memory: Killed process 7"});
}

/* One node was killed first; on another, which did not know of the stop yet, a rank lost its peer. */
#define STOPPING(person)                                                                         \
    "{\"event\":\"stopping\",\"grace_seconds\":10,\"reason\":\"stopped\",\"asked\":false" person \
    ",\"sequence\":1,\"time_ms\":1}"

static void test_a_peer_ended_by_a_stop_is_not_a_failure(void **state)
{
    const char *const lines[] = {EXITED("0", "null", "stopped", "1"),
                                 FAILED("1", "peer", "connection closed"),
                                 EXITED("1", "1", "failed", "2"), NULL};
    const char *const told_later[] = {FAILED("1", "peer", "connection closed"),
                                      EXITED("1", "1", "failed", "2"), STOPPING(",\"person\":true"),
                                      NULL};

    check(
        true, lines,
        (expected){DT_RUN_STOPPED, DT_EXIT_STOPPED,
                   "stopped by request; it did not exit cleanly: rank 0 on a exited with code -1"});
    check(false, told_later,
          (expected){DT_RUN_STOPPED, DT_EXIT_STOPPED,
                     "stopped by request; it did not exit cleanly: rank 1 on a exited with code "
                     "1: connection closed"});
    (void)state;
}

/* A stop was answered while the disk was full, and its supervisor was killed. The next
 * supervisor got another stop before it read of the first one in a journal. */
static void test_two_stops_and_the_first_took_the_peer(void **state)
{
    static const struct {
        const char *stopping;
        bool has_failed;
    } cases[] = {
        {STOPPING(",\"person\":true"), false},
        {"{\"event\":\"stopping\",\"grace_seconds\":10,\"reason\":\"stopped\",\"asked\":false,"
         "\"person\":true,\"sequence\":1,\"time_ms\":30000}",
         true}, /* this supervisor's stop, after the loss */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_verdict verdict;

        dt_verdict_init(&verdict, WORLD_SIZE);
        see(&verdict, "a", FAILED("1", "peer", "connection closed"));
        see(&verdict, "a", EXITED("1", "1", "failed", "2"));
        verdict.stop_asked = true;
        assert_true(dt_verdict_has_failed(&verdict));
        see(&verdict, "b", cases[i].stopping);
        assert_int_equal(dt_verdict_has_failed(&verdict), cases[i].has_failed);
        dt_verdict_release(&verdict);
    }
}

/* A supervisor ended the ranks because of a failure; the store was deleted before the failure was recorded. */
static void test_an_end_by_a_supervisor_is_not_a_foreign_signal(void **state)
{
    static const struct {
        const char *lines[4];
        bool stop_asked, is_lost;
    } cases[] = {
        {{STOPPING(",\"person\":false"), FINISHED("stopped")}, false, true},
        {{STOPPING(",\"person\":false"), EXITED("0", "0", "", "5")}, false, true},
        {{STOPPING(",\"person\":false"), FINISHED("stopped")}, true, false},
        {{STOPPING(",\"person\":false"), FINISHED("steps")}, false, false},
        {{STOPPING(",\"person\":false"), FINISHED("time_limit")}, false, false},
        {{STOPPING(",\"person\":false"), KILLED("1", "5")}, false, false},
        {{STOPPING(",\"person\":true"), FINISHED("stopped")}, false, false},
        /* An event of 0.1.0, which does not say who asked. */
        {{STOPPING(""), FINISHED("stopped")}, false, false},
        {{FINISHED("stopped")}, false, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_verdict verdict;

        dt_verdict_init(&verdict, 2);
        verdict.stop_asked = cases[i].stop_asked;
        for (const char *const *line = cases[i].lines; *line != NULL; line++)
            see(&verdict, "a", *line);
        assert_int_equal(dt_verdict_has_lost_cause(&verdict), cases[i].is_lost);
        if (cases[i].is_lost)
            assert_false(dt_verdict_is_explained(&verdict));
        dt_verdict_release(&verdict);
    }
}

/* A stop was answered while the disk was full, and the supervisor that knew of it was killed. */
static void test_a_stop_that_the_history_lacks_is_in_a_journal(void **state)
{
    const char *const lines[] = {
        "{\"event\":\"stopping\",\"grace_seconds\":0,\"reason\":\"stopped\","
        "\"asked\":false,\"person\":true,\"sequence\":1,\"time_ms\":1}",
        FINISHED("signal"), NULL};

    check(false, lines, (expected){DT_RUN_STOPPED, 4, "stopped by request"});
}

static bool restarts_if(const char *line, bool stop_asked, bool worked)
{
    dt_verdict verdict;
    bool may;

    dt_verdict_init(&verdict, WORLD_SIZE);
    verdict.stop_asked = stop_asked;
    see(&verdict, "a", FAILED("2", "recipe", "training has diverged"));
    see(&verdict, "a", FAILED("1", "io", "cannot read 'x'"));
    see(&verdict, "a", FAILED("3", "unsupported", "the driver does not answer"));
    see(&verdict, "a", line);
    may = dt_verdict_may_restart(&verdict, worked);
    dt_verdict_release(&verdict);
    return may;
}

static bool restarts(const char *line, bool stop_asked)
{
    return restarts_if(line, stop_asked, false);
}

static void test_only_failures_that_may_pass_are_retried(void **state)
{
    assert_true(restarts(KILLED("1", "5"), false));
    assert_true(restarts(EXITED("1", "1", "failed", "5"), false));
    assert_true(restarts(EXITED("1", "null", "agent_lost", "5"), false));
    assert_true(restarts(EXITED("1", "null", "rebooted", "5"), false));
    assert_false(restarts(EXITED("2", "1", "failed", "5"), false));
    assert_false(restarts(EXITED("0", "null", "not_started", "5"), false));
    assert_false(restarts(EXITED("3", "1", "failed", "5"), false));
    /* a device or a program that an earlier attempt has used is missing for a moment only */
    assert_true(restarts_if(EXITED("0", "null", "not_started", "5"), false, true));
    assert_true(restarts_if(EXITED("3", "1", "failed", "5"), false, true));
    assert_false(restarts_if(EXITED("2", "1", "failed", "5"), false, true));
    assert_false(restarts(KILLED("1", "5"), true));
    assert_false(restarts(EXITED("1", "0", "", "5"), false));
}

static void test_ranks_that_end_silently_have_not_finished(void **state)
{
    const char *const lines[] = {EXITED("0", "0", "", "5"), RELEASED(""), NULL};

    check(
        false, lines,
        (expected){DT_RUN_FAILED, 1, "every rank exited with code 0 before training was finished"});
}

/* If events were lost, or the end of a rank is unknown, the end is not explained. */
static void test_an_end_is_explained_by_reported_events(void **state)
{
    static const struct {
        const char *line;
        bool explained;
    } cases[] = {{FINISHED("steps"), true},
                 {KILLED("0", "5"), true},
                 {EXITED("0", "1", "stopped", "5"), true},
                 {EXITED("0", "0", "", "5"), false},
                 {RELEASED(""), false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_verdict verdict;

        dt_verdict_init(&verdict, WORLD_SIZE);
        assert_false(dt_verdict_is_explained(&verdict));
        see(&verdict, "a", cases[i].line);
        assert_int_equal(dt_verdict_is_explained(&verdict), cases[i].explained);
        verdict.stop_asked = true;
        assert_true(dt_verdict_is_explained(&verdict));
        dt_verdict_release(&verdict);
    }
}

static void test_messages_are_checked(void **state)
{
    static const char *const bad[] = {
        "{}",
        "{\"event\":\"alive\"",
        "{\"event\":\"ready\",\"rank\":4,\"sequence\":0,\"time_ms\":1}",
        "{\"event\":\"ready\",\"rank\":-1,\"sequence\":0,\"time_ms\":1}",
        "{\"event\":\"ready\",\"rank\":0,\"time_ms\":1}",
        "{\"event\":\"released\",\"left\":3,\"sequence\":0,\"time_ms\":1}",
        "{\"event\":\"\"}",
        "{\"event\":\"of-a-name-that-is-longer-than-any-event-of-any-agent-will-ever-have\"}",
    };
    static const char later[] = "{\"event\":\"sang\",\"rank\":1,\"sequence\":7,\"time_ms\":1}";
    dt_message message;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(dt_message_parse(&message, bad[i], strlen(bad[i]), WORLD_SIZE, NULL),
                         DT_ERR_CORRUPT);
    }
    assert_int_equal(dt_message_parse(&message, later, strlen(later), WORLD_SIZE, NULL), DT_OK);
    assert_int_equal(message.kind, DT_MESSAGE_UNKNOWN);
    assert_int_equal(message.sequence, 7);
    dt_message_release(&message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_peer_ended_by_a_stop_is_not_a_failure),
        cmocka_unit_test(test_two_stops_and_the_first_took_the_peer),
        cmocka_unit_test(test_all_steps_are_done),
        cmocka_unit_test(test_a_rank_that_ended_early_is_the_cause),
        cmocka_unit_test(test_a_rank_that_ended_early_is_named_before_a_hang),
        cmocka_unit_test(test_a_rank_that_others_waited_for_is_named),
        cmocka_unit_test(test_the_first_cause_is_not_the_first_to_arrive),
        cmocka_unit_test(test_the_message_of_the_rank_is_the_reason),
        cmocka_unit_test(test_a_lost_agent_is_the_systems_failure),
        cmocka_unit_test(test_a_rebooted_node_is_the_systems_failure),
        cmocka_unit_test(test_a_stop_is_distinguished_from_a_failure),
        cmocka_unit_test(test_a_stop_at_once_kills_and_ends_events),
        cmocka_unit_test(test_processes_that_are_left_have_an_exit_code_of_their_own),
        cmocka_unit_test(test_unreleased_device_memory_is_reported_as_left),
        cmocka_unit_test(test_a_time_limit_and_a_lost_launcher_are_stops_of_their_own),
        cmocka_unit_test(test_the_kernels_words_are_part_of_the_reason),
        cmocka_unit_test(test_an_end_by_a_supervisor_is_not_a_foreign_signal),
        cmocka_unit_test(test_a_stop_that_the_history_lacks_is_in_a_journal),
        cmocka_unit_test(test_only_failures_that_may_pass_are_retried),
        cmocka_unit_test(test_ranks_that_end_silently_have_not_finished),
        cmocka_unit_test(test_an_end_is_explained_by_reported_events),
        cmocka_unit_test(test_messages_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
