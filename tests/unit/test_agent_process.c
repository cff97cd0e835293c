#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runner/agent/process/describe.h"
#include "runner/agent/process/process.h"
#include "runner/agent/process/spawn.h"

static const dt_spawn_place outside = {.cgroup_procs = -1, .mask = 022};

static bool is_found(pid_t wanted, pid_t ancestor, const char *mark)
{
    dt_process *found;
    bool hit = false;
    size_t count;

    assert_int_equal(dt_process_find(&found, &count, ancestor, mark, NULL, NULL), DT_OK);
    for (size_t i = 0; i < count; i++)
        hit = hit || found[i].pid == wanted;
    free(found);
    return hit;
}

static pid_t start(dt_spawned *spawned, const char *command, const char *mark)
{
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    dt_environment environment;
    dt_error err = DT_ERROR_INIT;

    dt_environment_init(&environment);
    if (mark != NULL)
        dt_environment_set(&environment, "DTRUN_NODE_DIR", mark);
    assert_int_equal(dt_spawn(spawned, (char *const *)argv, environment.items, &outside, &err),
                     DT_OK);
    dt_environment_release(&environment);
    return spawned->pid;
}

static void finish(dt_spawned *spawned)
{
    kill(spawned->pid, SIGKILL);
    waitpid(spawned->pid, NULL, 0);
    close(spawned->channel);
    close(spawned->out);
    close(spawned->err);
}

static void test_a_descendant_is_found_without_any_mark(void **state)
{
    dt_spawned spawned;
    pid_t pid = start(&spawned, "exec sleep 30", NULL);

    assert_true(is_found(pid, getpid(), "DTRUN_NODE_DIR=/no/such"));
    assert_false(is_found(getpid(), getpid(), "DTRUN_NODE_DIR=/no/such"));
    finish(&spawned);
    assert_false(is_found(pid, getpid(), "DTRUN_NODE_DIR=/no/such"));
}

static void test_a_marked_process_is_found_wherever_it_descends_from(void **state)
{
    dt_spawned spawned;
    pid_t pid = start(&spawned, "exec sleep 30", "/tmp/a test");
    pid_t nobody = 2147483600; /* an ancestor that does not exist */

    /* while a process executes another program, Linux shows an empty environment for a moment */
    for (int i = 0; i < 2000 && !is_found(pid, nobody, "DTRUN_NODE_DIR=/tmp/a test"); i++)
        usleep(1000);
    assert_true(is_found(pid, nobody, "DTRUN_NODE_DIR=/tmp/a test"));
    assert_false(is_found(pid, nobody, "DTRUN_NODE_DIR=/tmp/a tes"));
    assert_false(is_found(pid, nobody, "DTRUN_NODE_DIR=/tmp/a test/b"));
    finish(&spawned);
}

static void test_a_signal_is_sent_only_to_the_identified_process(void **state)
{
    dt_process process;
    dt_spawned spawned;
    pid_t pid = start(&spawned, "exec sleep 30", NULL);
    int status;

    assert_true(dt_process_read(&process, pid));
    assert_false(dt_process_signal(pid, process.start_ticks + 1, SIGKILL));
    assert_true(dt_process_read(&process, pid));
    assert_true(dt_process_signal(pid, process.start_ticks, SIGTERM));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_false(dt_process_signal(pid, process.start_ticks, SIGTERM));
    finish(&spawned);
}

static void test_a_rank_has_its_channel_as_descriptor_three_and_a_session(void **state)
{
    char text[64] = "";
    dt_spawned spawned;

    start(&spawned, "echo out; echo err >&2; read line <&3; echo \"got $line\" >&3", NULL);
    assert_int_equal(write(spawned.channel, "hello\n", 6), 6);
    assert_int_equal(read(spawned.channel, text, sizeof(text)), 10);
    assert_memory_equal(text, "got hello\n", 10);
    assert_int_equal(read(spawned.out, text, sizeof(text)), 4);
    assert_memory_equal(text, "out\n", 4);
    assert_int_equal(read(spawned.err, text, sizeof(text)), 4);
    assert_memory_equal(text, "err\n", 4);
    finish(&spawned);
}

static void test_a_program_that_cannot_run_is_an_error_with_its_path(void **state)
{
    const char *const argv[] = {"/no/such/engine", NULL};
    char *const nothing[] = {NULL};
    dt_error err = DT_ERROR_INIT;
    dt_spawned spawned;

    assert_int_equal(dt_spawn(&spawned, (char *const *)argv, nothing, &outside, &err), DT_ERR_IO);
    assert_string_equal(err.message, "cannot run '/no/such/engine': No such file or directory");
}

static void test_environment_replaces_by_whole_name(void **state)
{
    dt_environment environment;
    int ranks = 0;

    setenv("DTRUN_TEST_RANK", "old", 1);
    setenv("DTRUN_TEST_RANK_2", "other", 1);
    dt_environment_init(&environment);
    dt_environment_set_int(&environment, "DTRUN_TEST_RANK", 7);
    for (size_t i = 0; i < environment.count; i++) {
        ranks += strcmp(environment.items[i], "DTRUN_TEST_RANK=7") == 0;
        ranks += strcmp(environment.items[i], "DTRUN_TEST_RANK_2=other") == 0;
        assert_string_not_equal(environment.items[i], "DTRUN_TEST_RANK=old");
    }
    assert_int_equal(ranks, 2);
    dt_environment_release(&environment);
}

/* Waits until the process is in that state. */
static dt_process_activity activity_in(pid_t pid, char state)
{
    dt_process_activity activity = {0};

    while (activity.state != state) {
        assert_true(dt_process_activity_read(&activity, pid));
        usleep(1000);
    }
    return activity;
}

static void test_activity_distinguishes_running_sleeping_and_stopped(void **state)
{
    dt_process_activity first, second;
    dt_spawned spawned;
    pid_t pid = start(&spawned, "exec sleep 30", NULL);

    (void)activity_in(pid, 'S');
    kill(pid, SIGSTOP);
    first = activity_in(pid, 'T');
    second = activity_in(pid, 'T');
    assert_float_equal(second.cpu_seconds, first.cpu_seconds, 0); /* it uses no processor time */
    finish(&spawned);
    assert_false(dt_process_activity_read(&first, pid));

    pid = start(&spawned, "while :; do :; done", NULL);
    first = second = activity_in(pid, 'R');
    while (second.cpu_seconds < first.cpu_seconds + 0.05)
        second = activity_in(pid, 'R');
    finish(&spawned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_descendant_is_found_without_any_mark),
        cmocka_unit_test(test_a_marked_process_is_found_wherever_it_descends_from),
        cmocka_unit_test(test_a_signal_is_sent_only_to_the_identified_process),
        cmocka_unit_test(test_a_rank_has_its_channel_as_descriptor_three_and_a_session),
        cmocka_unit_test(test_a_program_that_cannot_run_is_an_error_with_its_path),
        cmocka_unit_test(test_environment_replaces_by_whole_name),
        cmocka_unit_test(test_activity_distinguishes_running_sleeping_and_stopped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
