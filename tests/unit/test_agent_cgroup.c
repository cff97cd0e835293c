#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runner/agent/process/process.h"
#include "runner/agent/process/spawn.h"

/* Makes a group for this test, or skips the test with the reason. */
static void make(dt_cgroup *cgroup)
{
    dt_error err = DT_ERROR_INIT;
    char name[64];

    snprintf(name, sizeof(name), "unit test/%d", (int)getpid());
    if (dt_cgroup_make(cgroup, name, &err) == DT_OK)
        return;
    print_message("skipped: %s\n", err.message);
    skip();
}

static void test_what_a_child_starts_is_found_and_killed_with_it(void **state)
{
    const char *const argv[] = {"/bin/sh", "-c",
                                "echo $$; setsid env -i /bin/sh -c 'echo $$; exec sleep 30'", NULL};
    char *const nothing[] = {NULL};
    pid_t nobody = 2147483600; /* an ancestor that does not exist */
    dt_error err = DT_ERROR_INIT;
    int status, pids[2];
    dt_spawned spawned;
    dt_process *found;
    dt_cgroup cgroup;
    size_t count;
    FILE *out;

    make(&cgroup);
    assert_int_equal(dt_spawn(&spawned, (char *const *)argv, nothing,
                              &(dt_spawn_place){.cgroup_procs = cgroup.procs, .mask = 022}, &err),
                     DT_OK);
    out = fdopen(spawned.out, "r");
    assert_int_equal(fscanf(out, "%d %d", &pids[0], &pids[1]), 2);
    assert_true(dt_cgroup_holds(cgroup.inside, pids[0]));
    assert_true(dt_cgroup_holds(cgroup.inside, pids[1]));
    assert_false(dt_cgroup_holds(cgroup.inside, getpid()));
    assert_int_equal(dt_process_find(&found, &count, nobody, "A=none", cgroup.inside, &err), DT_OK);
    assert_true(count >= 2);
    assert_false(dt_cgroup_remove(&cgroup)); /* it is in use */
    for (size_t i = 0; i < count; i++)
        dt_process_signal(found[i].pid, found[i].start_ticks, SIGKILL);
    dt_cgroup_kill(&cgroup);
    assert_int_equal(waitpid(spawned.pid, &status, 0), spawned.pid);
    assert_true(WIFSIGNALED(status));
    for (int tries = 0; tries < 1000 && !dt_cgroup_remove(&cgroup); tries++)
        usleep(10000);
    assert_int_not_equal(access(cgroup.folder, F_OK), 0);
    free(found);
    fclose(out);
    close(spawned.channel);
    close(spawned.err);
    dt_cgroup_release(&cgroup);
}

static void test_a_group_is_adopted_by_its_folder(void **state)
{
    dt_cgroup cgroup, again;

    make(&cgroup);
    assert_int_equal(dt_cgroup_adopt(&again, cgroup.folder, NULL), DT_OK);
    assert_string_equal(again.inside, cgroup.inside);
    assert_string_equal(again.folder, cgroup.folder);
    dt_cgroup_release(&again);
    assert_true(dt_cgroup_remove(&cgroup));
    assert_int_equal(dt_cgroup_adopt(&again, cgroup.folder, NULL), DT_ERR_NOT_FOUND);
    dt_cgroup_release(&cgroup);
}

static void test_a_folder_that_is_not_a_group_is_refused(void **state)
{
    static const char *const folders[] = {
        "", "/", "/tmp", "/sys/fs/cgroup", "/tmp/dtrun-a", "/sys/fs/cgroup/system.slice"};

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        dt_cgroup cgroup;

        assert_int_equal(dt_cgroup_adopt(&cgroup, folders[i], NULL), DT_ERR_UNSUPPORTED);
        assert_null(cgroup.inside);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_child_starts_is_found_and_killed_with_it),
        cmocka_unit_test(test_a_group_is_adopted_by_its_folder),
        cmocka_unit_test(test_a_folder_that_is_not_a_group_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
