/* What a node is used for, read from a folder that looks like /proc, /sys and the control groups of a container, and from
 * this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "runner/agent/process/usage.h"
#include "tests/unit/machine_support.h"

#define MB (1 << 20)

static int make_files(void **state)
{
    char path[128];

    if (machine_make(state) != 0)
        return 1;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)getpid(), (int)getpid());
    machine_put(path, "1 2 3\n");
    snprintf(path, sizeof(path), "/proc/%d/status", (int)getpid());
    machine_put(path, "Name:\ta\nCpus_allowed_list:\t0-3\n");
    machine_put("/proc/stat",
                "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 100 0 0 0 0 0 0 0 0 0\ncpu1 100 0 0 0 0 0 0 0 0 0\n"
                "cpu2 0 0 0 0 0 0 0 0 0 0\ncpu3 0 0 0 0 0 0 0 0 0 0\n");
    machine_put("/proc/meminfo", "MemTotal: 16384 kB\nMemFree: 1024 kB\nMemAvailable: 4096 kB\n");
    machine_put("/proc/diskstats",
                "8 0 sda 5 0 200 0 5 0 400 0 0 0 0\n8 1 sda1 5 0 200 0 5 0 400 0 0 0 0\n"
                "7 0 loop0 5 0 200 0 5 0 400 0 0 0 0\n");
    machine_put("/sys/block/sda/device/model", "a disk");
    machine_put("/proc/net/dev",
                "Inter-| Receive | Transmit\n face |bytes packets | bytes packets\n"
                "    lo: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n"
                "  eth0:100 1 0 0 0 0 0 0 300 1 0 0 0 0 0 0\n"
                " bond0:100 1 0 0 0 0 0 0 300 1 0 0 0 0 0 0\n");
    return 0;
}

static dt_usage look_at(const char *where)
{
    dt_usage now;

    dt_usage_read(&now, &(dt_usage_question){.root = where, .agent = getpid(), .folder = "/"});
    return now;
}

static double value_of(const json_t *values, const char *name)
{
    const json_t *value = json_object_get(values, name);

    if (value == NULL)
        fail_msg("no %s", name);
    return json_real_value(value);
}

static void test_a_whole_machine(void **state)
{
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    dt_usage now = look_at(machine);

    assert_float_equal(now.processors, 4, 0);
    assert_float_equal(now.busy_seconds, 200 * tick, 1e-9);
    assert_float_equal(now.memory_bytes, 16 * MB, 0);
    assert_float_equal(now.used_bytes, 12 * MB, 0);
    assert_float_equal(now.read_bytes, 200 * 512, 0); /* neither its partition nor a loop */
    assert_float_equal(now.written_bytes, 400 * 512, 0);
    assert_float_equal(now.received_bytes, 200, 0); /* none is a device: all but the loopback */
    machine_put("/sys/class/net/eth0/device/vendor", "0x8086");
    now = look_at(machine);
    assert_float_equal(now.received_bytes, 100, 0); /* the bond is not a device */
    assert_float_equal(now.sent_bytes, 300, 0);
}

/* The tightest group counts, with what it uses itself. */
static void test_a_container_is_its_limits(void **state)
{
    dt_usage now;

    machine_put("/proc/self/cgroup", "0::/box/job\n");
    machine_put("/proc/self/mountinfo", "1 2 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    machine_put("/sys/fs/cgroup/box/cpu.max", "150000 100000\n");
    machine_put("/sys/fs/cgroup/box/cpu.stat", "usage_usec 3000000\nuser_usec 1\n");
    machine_put("/sys/fs/cgroup/box/job/cpu.max", "max 100000\n");
    machine_put("/sys/fs/cgroup/box/job/cpu.stat", "usage_usec 1000000\n");
    machine_put("/sys/fs/cgroup/box/memory.max", "8388608\n");
    machine_put("/sys/fs/cgroup/box/memory.current", "7340032\n");
    machine_put("/sys/fs/cgroup/box/memory.stat", "anon 5\ninactive_file 1048576\n");
    machine_put("/sys/fs/cgroup/box/job/memory.max", "max\n");
    machine_put("/sys/fs/cgroup/box/job/memory.current", "1\n");
    now = look_at(machine);
    assert_float_equal(now.processors, 1.5, 1e-9);
    assert_float_equal(now.busy_seconds, 3, 1e-9);
    assert_float_equal(now.memory_bytes, 8 * MB, 0);
    assert_float_equal(now.used_bytes, 6 * MB, 0);                 /* without its file cache */
    machine_put("/sys/fs/cgroup/box/cpu.max", "9900000 100000\n"); /* more than the machine has */
    machine_put("/sys/fs/cgroup/box/memory.max", "99388608000\n");
    now = look_at(machine);
    assert_float_equal(now.processors, 4, 0);
    assert_float_equal(now.memory_bytes, 16 * MB, 0);
}

static void test_what_a_kernel_lacks_is_left_out(void **state)
{
    dt_usage before, now;
    json_t *values;

    assert_int_equal(dt_file_remove_tree(machine, NULL), DT_OK);
    before = now = look_at(machine);
    now.seconds += 10;
    values = dt_usage_values(&before, &now);
    assert_null(json_object_get(values, "cpu_percent"));
    assert_null(json_object_get(values, "memory_used_bytes"));
    assert_null(json_object_get(values, "disk_read_bytes_per_second"));
    assert_null(json_object_get(values, "received_bytes_per_second"));
    assert_non_null(json_object_get(values, "disk_free_bytes"));
    json_decref(values);
    machine_put("/proc/stat", "");
}

static void test_values_are_rates(void **state)
{
    dt_usage before = {100, 4, 50, 20, 16 * MB, 12 * MB, MB, 0, 1000, 7, 500, 600, 0};
    dt_usage now = {110, 4, 70, 30, 16 * MB, 12 * MB, MB, 5120, 2000, 8, 400, 700, 0};
    json_t *values = dt_usage_values(&before, &now);

    assert_float_equal(value_of(values, "cpu_percent"), 50, 1e-9);
    assert_float_equal(value_of(values, "run_cpu_percent"), 25, 1e-9);
    assert_float_equal(value_of(values, "memory_used_bytes"), 12 * MB, 0);
    assert_float_equal(value_of(values, "memory_total_bytes"), 16 * MB, 0);
    assert_float_equal(value_of(values, "run_memory_bytes"), MB, 0);
    assert_float_equal(value_of(values, "disk_read_bytes_per_second"), 512, 1e-9);
    assert_float_equal(value_of(values, "disk_written_bytes_per_second"), 100, 1e-9);
    assert_float_equal(value_of(values, "disk_free_bytes"), 8, 0);
    assert_float_equal(value_of(values, "received_bytes_per_second"), 0, 0); /* a removed device */
    assert_float_equal(value_of(values, "sent_bytes_per_second"), 10, 1e-9);
    json_decref(values);
    now.busy_seconds = 1000; /* more than there is: the clocks have different ticks */
    values = dt_usage_values(&before, &now);
    assert_float_equal(value_of(values, "cpu_percent"), 100, 0);
    json_decref(values);
    now.processors = 2; /* of a limit that was changed meanwhile: the sums are of something else */
    values = dt_usage_values(&before, &now);
    assert_null(json_object_get(values, "cpu_percent"));
    json_decref(values);
    now.seconds = before.seconds;
    values = dt_usage_values(&before, &now);
    assert_int_equal(json_object_size(values), 0);
    json_decref(values);
}

/* The run has the descendants of the agent: here a child with a child that holds 64 MB and works. */
static void test_the_run_has_its_descendants(void **state)
{
    int told[2], end[2];
    dt_usage before = look_at(""), now;
    pid_t child;
    char byte;

    assert_int_equal(pipe(told), 0);
    assert_int_equal(pipe(end), 0);
    child = fork();
    if (child == 0) {
        close(end[1]);
        if (fork() == 0) {
            volatile char *block = malloc(64 * MB);
            volatile double sum = 0;

            for (size_t i = 0; block != NULL && i < 64 * MB; i += 512)
                block[i] = 1;
            for (int i = 0; i < 200 * 1000 * 1000; i++)
                sum = sum + i;
            (void)!write(told[1], "x", 1);
        }
        (void)!read(end[0], &byte, 1); /* until the other end is closed */
        while (wait(NULL) > 0)
            ;
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(read(told[0], &byte, 1), 1);
    now = look_at("");
    assert_true(now.cost_seconds > 0 && now.cost_seconds < 10);
    assert_true(now.run_bytes >= 64 * MB && now.run_bytes < 4096.0 * MB);
    assert_true(now.run_seconds - before.run_seconds > 0.05);
    close(end[0]);
    close(end[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    before = now;
    now = look_at("");
    assert_float_equal(now.run_bytes, 0, 0);
    assert_true(now.run_seconds >= before.run_seconds); /* that of the ended ones stays */
    close(told[0]);
    close(told[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_whole_machine, make_files, machine_remove),
        cmocka_unit_test_setup_teardown(test_a_container_is_its_limits, make_files, machine_remove),
        cmocka_unit_test_setup_teardown(test_what_a_kernel_lacks_is_left_out, make_files,
                                        machine_remove),
        cmocka_unit_test(test_values_are_rates),
        cmocka_unit_test(test_the_run_has_its_descendants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
