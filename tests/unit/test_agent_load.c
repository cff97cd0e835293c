/* The load of a process, read from a folder that looks like /proc and /sys of a larger machine, and from this one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "runner/agent/process/load.h"
#include "tests/unit/machine_support.h"

static int make_files(void **state)
{
    if (machine_make(state) != 0)
        return 1;
    machine_put("/proc/70/task/70/schedstat", "2000000000 500000000 12\n");
    machine_put("/proc/70/task/71/schedstat", "1000000000 250000000 3\n");
    machine_put("/proc/70/task/70/stat", "70 (a) b) S 1 1 1 0 -1 0 0 0 0 0");
    machine_put("/proc/70/task/70/wchan", "futex_do_wait");
    machine_put("/proc/70/status",
                "Name:\ta\nCpus_allowed:\tc\nCpus_allowed_list:\t2-3,9\nOther:\t1\n");
    machine_put("/proc/70/io", "rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\n");
    machine_put("/proc/70/cgroup", "1:name=systemd:/x\n0::/jobs/one\n");
    machine_put("/proc/stat",
                "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 900 0 0 0 0 0 0 0 0 0\n"
                "cpu2 100 100 100 5 5 0 0 30 0 0\ncpu3 200 0 0 5 5 0 0 70 0 0\nintr 5\n");
    machine_put("/sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "2100000\n");
    machine_put("/sys/devices/system/cpu/cpu2/cpufreq/cpuinfo_max_freq", "3400000\n");
    machine_put("/sys/devices/system/cpu/cpu2/thermal_throttle/core_throttle_count", "5\n");
    machine_put("/sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq", "2300000\n");
    machine_put("/sys/devices/system/cpu/cpu3/cpufreq/cpuinfo_max_freq", "3400000\n");
    machine_put("/sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count", "2\n");
    machine_put("/sys/fs/cgroup/jobs/one/cpu.stat", "usage_usec 5\nthrottled_usec 0\n");
    machine_put("/sys/fs/cgroup/jobs/cpu.stat", "usage_usec 5\nthrottled_usec 1500000\n");
    machine_put("/proc/net/dev",
                "Inter-| Receive | Transmit\n face |bytes packets | bytes packets\n"
                "    lo: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n"
                "  eth0:100 1 0 0 0 0 0 0 300 1 0 0 0 0 0 0\n"
                "  eth1: 50 1 0 0 0 0 0 0 60 1 0 0 0 0 0 0\n");
    machine_put("/proc/net/snmp",
                "Ip: A B\nIp: 1 2\nTcp: RtoMin InSegs OutSegs RetransSegs InErrs\n"
                "Tcp: -1 10 200 30 4\n");
    machine_put("/proc/80/task/80/schedstat", "1 2 3\n"); /* and nothing else: a small kernel */
    return 0;
}

static void test_every_counter(void **state)
{
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    dt_process_load load;

    assert_true(dt_process_load_read(&load, 70, machine));
    assert_float_equal(load.run_seconds, 3, 1e-9);
    assert_float_equal(load.delay_seconds, 0.75, 1e-9);
    assert_float_equal(load.first_run_seconds, 2, 1e-9);
    assert_float_equal(load.first_delay_seconds, 0.5, 1e-9);
    assert_string_equal(load.processors, "2-3,9");
    assert_int_equal(load.processor_count, 2); /* 9 is offline */
    assert_float_equal(load.busy_seconds, 500 * tick, 1e-9);
    assert_float_equal(load.stolen_seconds, 100 * tick, 1e-9);
    assert_float_equal(load.mhz, 2200, 1e-6);
    assert_float_equal(load.mhz_most, 3400, 1e-6);
    assert_int_equal(load.heat_stops, 7);
    assert_float_equal(load.limited_seconds, 1.5, 1e-9); /* of the group above */
    assert_int_equal(load.read_bytes, 4096);
    assert_int_equal(load.written_bytes, 8192);
}

static void test_what_a_kernel_lacks_is_unknown(void **state)
{
    dt_process_load load;

    assert_true(dt_process_load_read(&load, 80, machine));
    assert_true(load.run_seconds >= 0 && load.busy_seconds == -1 && load.mhz == -1);
    assert_true(load.limited_seconds == -1 && load.read_bytes == -1 && load.heat_stops == -1);
    assert_int_equal(load.processor_count, 0);
    assert_false(dt_process_load_read(&load, 81, machine)); /* no such process */
}

static void test_sample_and_network(void **state)
{
    dt_process_sample sample;
    json_t *network = dt_network_load_json(machine);

    dt_process_sample_read(&sample, 70, machine);
    assert_int_equal(sample.state, 'S');
    assert_string_equal(sample.wchan, "futex_do_wait");
    dt_process_sample_read(&sample, 81, machine);
    assert_int_equal(sample.state, '?');
    assert_true(json_number_value(json_object_get(network, "received_bytes")) == 150);
    assert_true(json_number_value(json_object_get(network, "sent_bytes")) == 360);
    assert_true(json_number_value(json_object_get(network, "sent_segments")) == 200);
    assert_true(json_number_value(json_object_get(network, "resent_segments")) == 30);
    json_decref(network);
}

static void test_this_process(void **state)
{
    dt_process_load load;
    json_t *object;

    assert_true(dt_process_load_read(&load, getpid(), ""));
    assert_true(load.processor_count >= 1);
    object = dt_process_load_json(&load);
    assert_true(json_is_number(json_object_get(object, "run_seconds")));
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_counter),
        cmocka_unit_test(test_what_a_kernel_lacks_is_unknown),
        cmocka_unit_test(test_sample_and_network),
        cmocka_unit_test(test_this_process),
    };

    return cmocka_run_group_tests(tests, make_files, machine_remove);
}
