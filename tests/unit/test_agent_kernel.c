#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "runner/agent/process/describe.h"

static void test_lines_of_the_kernel_are_about_one_process(void **state)
{
    static const struct {
        const char *line;
        pid_t pid;
        bool names, oom;
    } cases[] = {
        {"Out of memory: Killed process 1234 (dtrun-engine) total-vm:99kB", 1234, true, true},
        {"Out of memory: Killed process 1234 (dtrun-engine) total-vm:99kB", 123, false, true},
        {"Out of memory: Killed process 1234 (dtrun-engine) total-vm:99kB", 99, false, true},
        {"Memory cgroup out of memory: Killed process 7 (a b) anon-rss:1kB", 7, true, true},
        {"oom-kill:constraint=CONSTRAINT_MEMCG,task=dtrun-engine,pid=55,uid=0", 55, true, true},
        {"oom_reaper: reaped process 55 (dtrun-engine), now anon-rss:0kB", 55, true, true},
        {"dtrun-engine[77]: segfault at 10 ip 00007f sp 00007f error 4", 77, true, false},
        {"NVRM: Xid (PCI:0000:01:00): 31, pid=77, name=dtrun-engine", 77, true, false},
        {"[   77.123] a stamp, and no process", 77, false, false},
        {"pid=", 0, false, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(dt_kernel_line_names(cases[i].line, cases[i].pid), cases[i].names);
        assert_int_equal(dt_kernel_line_is_oom(cases[i].line), cases[i].oom);
    }
}

static void test_a_killed_process_is_described_in_words(void **state)
{
    static const struct {
        int status;
        const char *words;
    } cases[] = {
        {SIGKILL, "killed by signal 9 (SIGKILL, Killed)"},
        {SIGSEGV | 0x80, "killed by signal 11 (SIGSEGV, Segmentation fault), core dumped"},
        {1 << 8, "exited with code 1"},
        {127 << 8, "exited with code 127 (a shell reports this way that it cannot run a program)"},
        {137 << 8, "exited with code 137 (a shell reports SIGKILL this way)"},
    };
    dt_strbuf words;

    dt_strbuf_init(&words);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_strbuf_reset(&words);
        dt_kernel_death_words(&words, cases[i].status);
        assert_string_equal(words.data, cases[i].words);
    }
    dt_strbuf_release(&words);
}

static size_t count_and_free(json_t *lines)
{
    size_t count = json_array_size(lines);

    json_decref(lines);
    return count;
}

/* If this test may write to the kernel's log, it writes about a process that never existed. */
static void test_only_later_kernel_messages_count(void **state)
{
    const char line[] = "<6>a test of dtrun: example[2147483600]: nothing happened";
    int pen = open("/dev/kmsg", O_WRONLY);
    bool written = write(pen, line, strlen(line)) > 0;
    int log = dt_kernel_log_open();

    assert_int_equal(count_and_free(dt_kernel_log_lines(-1, 2147483600)), 0);
    assert_int_equal(count_and_free(dt_kernel_log_lines(log, 2147483600)), 0);
    if (written && log >= 0 && write(pen, line, strlen(line)) > 0) {
        assert_int_equal(count_and_free(dt_kernel_log_lines(log, 2147483600)), 1);
        assert_int_equal(count_and_free(dt_kernel_log_lines(log, 2147483600)), 0);
    }
    close(log);
    close(pen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_of_the_kernel_are_about_one_process),
        cmocka_unit_test(test_a_killed_process_is_described_in_words),
        cmocka_unit_test(test_only_later_kernel_messages_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
