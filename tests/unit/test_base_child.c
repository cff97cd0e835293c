/* Programs that are started: their output, their time limit, what they inherit, and that nothing which they started
 * outlives them when they are ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/process.h"

#define SHELL(text)                           \
    (const char *const[])                     \
    {                                         \
        "/bin/sh", "-c", (text), (char *)NULL \
    }

#define LONG_SECONDS 100 /* longer than anything here takes, on a busy machine too */

/* Starts a process in the background and stays itself: both must be ended. It prints their pids. */
#define TWO_SLEEPS "sleep 1000 & echo $! $$; exec sleep 1000"

static bool is_alive(int64_t pid)
{
    dt_proc_stat stat;

    return dt_proc_stat_read(&stat, pid) && stat.state != 'Z' && stat.state != 'X';
}

static void assert_gone(int64_t pid)
{
    double until = dt_clock_monotonic_seconds() + LONG_SECONDS;

    assert_true(pid > 1);
    while (is_alive(pid) && dt_clock_monotonic_seconds() < until)
        dt_clock_sleep_seconds(0.01);
    assert_false(is_alive(pid));
}

/* Reads the pids of TWO_SLEEPS from the other end of its stdout. */
static void read_pids(long pids[2], int fd)
{
    char text[64] = "";
    size_t used = 0;
    ssize_t got;

    while (strchr(text, '\n') == NULL && used < sizeof(text) - 1 &&
           (got = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
        used += (size_t)got;
    assert_int_equal(sscanf(text, "%ld %ld", &pids[0], &pids[1]), 2);
}

static void test_output_input_and_exit_code_are_collected(void **state)
{
    dt_strbuf out, errors;
    int code = -1;

    dt_strbuf_init(&out);
    dt_strbuf_init(&errors);
    assert_int_equal(dt_child_run(&code,
                                  &(dt_child_call){.argv = SHELL("cat; echo bad >&2; exit 7"),
                                                   .input = "two\nlines",
                                                   .out = &out,
                                                   .errors = &errors,
                                                   .seconds = 20},
                                  NULL),
                     DT_OK);
    assert_int_equal(code, 7);
    assert_string_equal(out.data, "two\nlines");
    assert_string_equal(errors.data, "bad\n");
    dt_strbuf_reset(&out);
    assert_int_equal(
        dt_child_run(&code,
                     &(dt_child_call){.argv = SHELL("yes | head -c 100000; kill -9 $$"),
                                      .out = &out,
                                      .most_bytes = 1000},
                     NULL),
        DT_OK);
    assert_int_equal(code, 128 + SIGKILL);
    assert_int_equal(out.length, 1000);
    dt_strbuf_release(&out);
    dt_strbuf_release(&errors);
}

static void test_a_program_that_cannot_be_run_is_an_error(void **state)
{
    const char *const argv[] = {"no-such-program-here", NULL};
    dt_error err = DT_ERROR_INIT;
    int code;

    assert_int_equal(dt_child_run(&code, &(dt_child_call){.argv = argv}, &err), DT_ERR_IO);
    assert_string_equal(err.message,
                        "cannot run 'no-such-program-here': No such file or directory");
    dt_error_clear(&err);
    assert_int_equal(
        dt_child_run(&code, &(dt_child_call){.argv = argv, .missing = "install it"}, &err),
        DT_ERR_UNSUPPORTED);
    assert_string_equal(err.message, "cannot find 'no-such-program-here': install it");
}

static void test_the_time_limit_ends_all_that_was_started(void **state)
{
    double start = dt_clock_monotonic_seconds();
    dt_error err = DT_ERROR_INIT;
    long pids[2];
    dt_strbuf out;
    int code;

    dt_strbuf_init(&out);
    /* longer, until the shell had time to start both */
    for (double limit = 0.5; out.length == 0; limit *= 2) {
        dt_error_clear(&err);
        assert_int_equal(
            dt_child_run(&code,
                         &(dt_child_call){.argv = SHELL(TWO_SLEEPS), .out = &out, .seconds = limit},
                         &err),
            DT_ERR_TIMEOUT);
    }
    assert_true(dt_clock_monotonic_seconds() < start + LONG_SECONDS);
    assert_int_equal(sscanf(out.data, "%ld %ld", &pids[0], &pids[1]), 2);
    assert_gone(pids[0]);
    assert_gone(pids[1]);
    dt_strbuf_release(&out);
}

static void test_output_held_open_by_others_is_not_waited_for(void **state)
{
    /* in the background, and out of the group; cat waits until the process has left it and closes 3 */
#define OUT_OF_GROUP(then) \
    "exec 4>&1; { setsid sh -c 'echo $$; exec 3>&-; " then "' 3>&1 1>&4 & } | cat"
    static const char *const scripts[] = {
        "sleep 1000 & echo $!",
        OUT_OF_GROUP("exec sleep 1000"),
        OUT_OF_GROUP("while :; do echo more; done"),
    };
    dt_strbuf out;
    int code;

    dt_strbuf_init(&out);
    for (int i = 0; i < 3; i++) {
        double start = dt_clock_monotonic_seconds();
        int64_t pid;

        dt_strbuf_reset(&out);
        assert_int_equal(
            dt_child_run(&code, &(dt_child_call){.argv = SHELL(scripts[i]), .out = &out}, NULL),
            DT_OK);
        assert_true(dt_clock_monotonic_seconds() < start + LONG_SECONDS);
        pid = strtoll(out.data, NULL, 10);
        if (i == 0) {
            assert_gone(pid);
        } else {
            assert_true(is_alive(pid)); /* it has left the group to stay */
            kill((pid_t)pid, SIGKILL);
        }
    }
    dt_strbuf_release(&out);
}

static dt_status refuse(void *context, const char *bytes, size_t length, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_PEER, "nobody reads");
}

static void test_an_error_of_the_reader_ends_the_program(void **state)
{
    dt_error err = DT_ERROR_INIT;
    int code;

    assert_int_equal(
        dt_child_run(&code, &(dt_child_call){.argv = SHELL("yes; sleep 1000"), .take = refuse},
                     &err),
        DT_ERR_PEER);
}

static void test_a_program_inherits_three_descriptors_and_no_terminal(void **state)
{
    int fd = open("/dev/null", O_RDONLY); /* without O_CLOEXEC */
    int code = -1, ids[4];
    dt_strbuf out;

    dt_strbuf_init(&out);
    assert_true(fd > STDERR_FILENO && dup2(fd, 9) == 9);
    assert_int_equal(
        dt_child_run(&code,
                     &(dt_child_call){.argv = SHELL("[ ! -e /proc/$$/fd/9 ] && cut -d' ' "
                                                    "-f1,5,6,7 /proc/$$/stat"),
                                      .out = &out},
                     NULL),
        DT_OK);
    assert_int_equal(code, 0);
    /* pid, process group, session, terminal */
    assert_int_equal(sscanf(out.data, "%d %d %d %d", &ids[0], &ids[1], &ids[2], &ids[3]), 4);
    assert_true(ids[0] == ids[1] && ids[0] == ids[2] && ids[3] == 0);
    close(fd);
    close(9);
    dt_strbuf_release(&out);
}

static void test_a_spared_group_outlives_the_program(void **state)
{
    dt_child child;
    long pids[2];
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(
        dt_child_start(&child, &(dt_child_spec){.argv = SHELL(TWO_SLEEPS), .out = ends[1]}, NULL),
        DT_OK);
    read_pids(pids, ends[0]);
    dt_child_spare_group(&child);
    dt_child_end(&child);
    assert_gone(pids[1]);
    assert_true(is_alive(pids[0]));
    kill((pid_t)pids[0], SIGKILL);
    close(ends[0]);
    close(ends[1]);
}

/* Starts TWO_SLEEPS in a process of its own, which is then ended by a signal. */
static void end_the_parent(bool guarded, int number)
{
    long pids[2];
    int ends[2];
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        dt_child child;

        dt_startup(0);
        dt_child_catch_signals();
        if ((guarded && !dt_child_guard()) ||
            dt_child_start(&child, &(dt_child_spec){.argv = SHELL(TWO_SLEEPS), .out = ends[1]},
                           NULL) != DT_OK)
            _exit(1);
        for (;;)
            pause();
    }
    read_pids(pids, ends[0]);
    kill(pid, number);
    assert_int_equal(waitpid(pid, &(int){0}, 0), pid);
    assert_gone(pids[0]);
    assert_gone(pids[1]);
    close(ends[0]);
    close(ends[1]);
}

static void test_a_signal_that_ends_a_process_ends_its_programs(void **state)
{
    end_the_parent(false, SIGTERM);
    end_the_parent(false, SIGHUP);
}

static void test_a_guard_ends_the_programs_of_a_killed_process(void **state)
{
    end_the_parent(true, SIGKILL);
}

/* Holds a process at its exit, as a file system that hangs would. Returns the pid of the holder; 0: not allowed here. */
static pid_t hold_at_exit(pid_t pid)
{
    int ends[2], seized = 0;
    pid_t holder;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    holder = fork();
    if (holder == 0) {
        seized = ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACEEXIT) == 0;
        if (write(ends[1], &seized, sizeof(seized)) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &seized, sizeof(seized)), sizeof(seized));
    close(ends[0]);
    close(ends[1]);
    if (!seized) {
        kill(holder, SIGKILL);
        waitpid(holder, NULL, 0);
    }
    return seized ? holder : 0;
}

static void test_the_wait_after_a_kill_has_a_limit(void **state)
{
    double start;
    dt_child child;
    pid_t pid, holder;

    assert_int_equal(
        dt_child_start(&child, &(dt_child_spec){.argv = SHELL("exec sleep 1000")}, NULL), DT_OK);
    pid = child.pid;
    holder = hold_at_exit(pid);
    if (holder == 0) {
        dt_child_end(&child);
        skip();
    }
    start = dt_clock_monotonic_seconds();
    dt_child_end(&child);
    assert_true(dt_clock_monotonic_seconds() > start + DT_CHILD_END_SECONDS / 2);
    assert_true(dt_clock_monotonic_seconds() < start + 10 * DT_CHILD_END_SECONDS);
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    waitpid(pid, NULL, 0);
}

static void test_a_lock_and_a_pipe_of_the_caller_do_not_reach_programs(void **state)
{
    char path[] = "/tmp/dtrun-child.XXXXXX", byte;
    int lock = mkstemp(path), again = open(path, O_RDWR | O_CLOEXEC), ends[2];
    dt_child child;

    assert_true(lock >= 0 && again >= 0 && flock(lock, LOCK_EX) == 0);
    assert_int_equal(pipe(ends), 0); /* without O_CLOEXEC */
    assert_int_equal(
        dt_child_start(&child, &(dt_child_spec){.argv = SHELL("exec sleep 1000")}, NULL), DT_OK);
    close(lock);
    close(ends[1]);
    assert_int_equal(flock(again, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(read(ends[0], &byte, 1), 0); /* end of file while the program runs */
    dt_child_end(&child);
    close(ends[0]);
    close(again);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output_input_and_exit_code_are_collected),
        cmocka_unit_test(test_a_program_that_cannot_be_run_is_an_error),
        cmocka_unit_test(test_the_time_limit_ends_all_that_was_started),
        cmocka_unit_test(test_output_held_open_by_others_is_not_waited_for),
        cmocka_unit_test(test_an_error_of_the_reader_ends_the_program),
        cmocka_unit_test(test_a_program_inherits_three_descriptors_and_no_terminal),
        cmocka_unit_test(test_a_spared_group_outlives_the_program),
        cmocka_unit_test(test_a_signal_that_ends_a_process_ends_its_programs),
        cmocka_unit_test(test_a_guard_ends_the_programs_of_a_killed_process),
        cmocka_unit_test(test_the_wait_after_a_kill_has_a_limit),
        cmocka_unit_test(test_a_lock_and_a_pipe_of_the_caller_do_not_reach_programs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
