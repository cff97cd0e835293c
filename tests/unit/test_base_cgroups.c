/* Memory limits and counters of control groups, from folders that simulate machines: versions 1
 * and 2, hybrid, and containers that see only a part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/resources.h"
#include "tests/unit/machine_support.h"

#define MB(n)      ((int64_t)(n) << 20)
#define V1_LINE    "4:memory:"
#define V1_NOTHING "9223372036854771712"

static void put_number(const char *folder, const char *name, int64_t value)
{
    char path[1024], text[32];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    snprintf(text, sizeof(text), "%lld\n", (long long)value);
    machine_put(path, text);
}

static void put_v1(const char *folder, int64_t limit, int64_t used)
{
    put_number(folder, "memory.limit_in_bytes", limit);
    put_number(folder, "memory.usage_in_bytes", used);
}

static void put_v2(const char *folder, int64_t limit, int64_t used)
{
    put_number(folder, "memory.max", limit);
    put_number(folder, "memory.current", used);
}

static int begin(void **state)
{
    assert_int_equal(machine_make(state), 0);
    machine_put("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n"); /* 8 GB */
    return 0;
}

static int64_t memory(void)
{
    int64_t bytes = -1;

    assert_int_equal(dt_resources_memory_in(&bytes, machine, NULL), DT_OK);
    return bytes;
}

static const char v1_mounts[] = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
                                "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                                "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
static const char v2_mount[] = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

static void test_no_groups_leave_what_the_machine_has(void **state)
{
    assert_int_equal(memory(), MB(8192));
    assert_int_equal(dt_cgroups_oom_kills(machine), -1);
    machine_put("proc/self/cgroup", "4:memory:/\n0::/\n");
    machine_put("proc/self/mountinfo", "");
    assert_int_equal(memory(), MB(8192));
}

static void test_the_smallest_limit_of_version_1_counts(void **state)
{
    machine_put("proc/self/mountinfo", v1_mounts);
    machine_put("proc/self/cgroup",
                "12:cpu,cpuacct:/other\n4:memory:/slurm/job_7/step_0\n1:name=systemd:/\n");
    machine_put("sys/fs/cgroup/memory/memory.limit_in_bytes", V1_NOTHING "\n");
    put_number("sys/fs/cgroup/memory", "memory.usage_in_bytes", MB(3000));
    put_v1("sys/fs/cgroup/memory/slurm", MB(6000), MB(1000));
    put_v1("sys/fs/cgroup/memory/slurm/job_7", MB(2000), MB(600));
    machine_put("sys/fs/cgroup/memory/slurm/job_7/memory.stat",
                "inactive_file 5\ntotal_inactive_file 104857600\n");
    put_v1("sys/fs/cgroup/memory/slurm/job_7/step_0", MB(4000), MB(500));
    assert_int_equal(memory(), MB(1500)); /* 2000 - 600 + 100 of file cache */
    put_v1("sys/fs/cgroup/memory/slurm/job_7/step_0", MB(700), MB(800));
    assert_int_equal(memory(), 0);
}

/* docker on RHEL 8 mounts the tree from the container's own group. */
static void test_a_container_sees_the_limits_above_it(void **state)
{
    machine_put("proc/self/mountinfo",
                "35 31 0:32 /docker/4f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    machine_put("proc/self/cgroup", V1_LINE "/docker/4f\n");
    put_v1("sys/fs/cgroup/memory", MB(3000), MB(1000));
    assert_int_equal(memory(), MB(2000));
    machine_put("sys/fs/cgroup/memory/memory.stat",
                "hierarchical_memory_limit 2621440000\n"); /* 2500 MB */
    assert_int_equal(memory(), MB(1500));
    machine_put("proc/self/cgroup", V1_LINE "/docker/4f/inner\n");
    put_v1("sys/fs/cgroup/memory/inner", MB(400), MB(100));
    assert_int_equal(memory(), MB(300));
    machine_put("proc/self/cgroup",
                V1_LINE "/somewhere/else\n"); /* the path is of another namespace */
    assert_int_equal(memory(), MB(1500));
    machine_put("sys/fs/cgroup/memory/memory.oom_control",
                "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
    assert_int_equal(dt_cgroups_oom_kills(machine), 3);
}

/* systemd's hybrid mode: version 2 is mounted, but without the memory controller. */
static void test_a_hybrid_has_memory_in_version_1(void **state)
{
    char mounts[1024];

    snprintf(mounts, sizeof(mounts), "%s%s", v1_mounts,
             "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n");
    machine_put("proc/self/mountinfo", mounts);
    machine_put("proc/self/cgroup", "4:memory:/user.slice\n0::/user.slice/session-1.scope\n");
    machine_put("sys/fs/cgroup/unified/user.slice/session-1.scope/memory.events", "oom_kill 99\n");
    put_v1("sys/fs/cgroup/memory/user.slice", MB(1000), MB(400));
    machine_put("sys/fs/cgroup/memory/user.slice/memory.oom_control",
                "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n");
    assert_int_equal(memory(), MB(600));
    assert_int_equal(dt_cgroups_oom_kills(machine), 7);
    machine_put("sys/fs/cgroup/memory/user.slice/memory.oom_control",
                "oom_kill_disable 0\nunder_oom 0\n");
    assert_int_equal(dt_cgroups_oom_kills(machine), -1); /* before Linux 4.13 */
    /* version 2 has the controller, at its own mount point */
    machine_put("proc/self/cgroup", "0::/user.slice/session-1.scope\n");
    put_v2("sys/fs/cgroup/unified/user.slice", MB(800), MB(300));
    assert_int_equal(memory(), MB(500));
    assert_int_equal(dt_cgroups_oom_kills(machine), 99);
}

static void test_the_smallest_limit_of_version_2_counts(void **state)
{
    machine_put("proc/self/mountinfo", v2_mount);
    machine_put("proc/self/cgroup", "0::/a/b\n");
    put_v2("sys/fs/cgroup/a", MB(900), MB(100));
    put_v2("sys/fs/cgroup/a/b", MB(2000), MB(50));
    machine_put("sys/fs/cgroup/a/memory.stat", "inactive_file 52428800\n");
    machine_put("sys/fs/cgroup/a/b/memory.events", "low 0\noom 2\noom_kill 1\n");
    assert_int_equal(memory(), MB(850));
    assert_int_equal(dt_cgroups_oom_kills(machine), 1);
    machine_put("sys/fs/cgroup/a/memory.max", "max\n");
    assert_int_equal(memory(), MB(1950));
}

static void test_names_with_blanks_are_found(void **state)
{
    machine_put("proc/self/mountinfo",
                "35 31 0:32 / /my\\040groups/memory rw shared:3 - cgroup cgroup rw,memory\n");
    machine_put("proc/self/cgroup", V1_LINE "/a b\n");
    put_v1("my groups/memory/a b", MB(500), MB(200));
    assert_int_equal(memory(), MB(300));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_groups_leave_what_the_machine_has, begin,
                                        machine_remove),
        cmocka_unit_test_setup_teardown(test_the_smallest_limit_of_version_1_counts, begin,
                                        machine_remove),
        cmocka_unit_test_setup_teardown(test_a_container_sees_the_limits_above_it, begin,
                                        machine_remove),
        cmocka_unit_test_setup_teardown(test_a_hybrid_has_memory_in_version_1, begin,
                                        machine_remove),
        cmocka_unit_test_setup_teardown(test_the_smallest_limit_of_version_2_counts, begin,
                                        machine_remove),
        cmocka_unit_test_setup_teardown(test_names_with_blanks_are_found, begin, machine_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
