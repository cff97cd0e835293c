/* The checkpoints of a program: complete after `settle` seconds in which the program ran, not after time since its
 * death, however late that is noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "runner/agent/program/program_int.h"

#define SETTLE_SECONDS 0.1
#define PAUSE_SECONDS  0.15

typedef struct fixture {
    char folder[64];
    dt_plan plan;
    dt_arena arena;
    dt_reports reports;
    dt_saves *saves;
    atomic_int_fast64_t step;
    int reported;
    pid_t program;
} fixture;

static void count(void *context, json_t *event)
{
    fixture *f = context;

    f->reported += strcmp(json_string_value(json_object_get(event, "event")), "checkpoint") == 0;
    json_decref(event);
}

static void ignore(void *context, const char *text) {}

static int begin(void **state)
{
    fixture *f = calloc(1, sizeof(*f));

    snprintf(f->folder, sizeof(f->folder), "/tmp/dtrun-saves.XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    dt_arena_init(&f->arena, 0);
    f->plan.run = "r1";
    f->plan.recipe.workdir.folder = f->folder;
    f->plan.recipe.checkpoints.path = "ck-{step}";
    f->plan.recipe.checkpoints.marker = "";
    f->plan.recipe.checkpoints.settle_seconds = SETTLE_SECONDS;
    f->reports = (dt_reports){count, ignore, f};
    dt_saves_open(&f->saves, &f->plan, &f->step, &f->reports, &f->arena);
    f->program = fork();
    if (f->program == 0)
        for (;;)
            pause();
    *state = f;
    return 0;
}

static int end(void **state)
{
    fixture *f = *state;

    kill(f->program, SIGKILL);
    waitpid(f->program, NULL, 0);
    dt_saves_close(f->saves);
    dt_arena_release(&f->arena);
    assert_int_equal(dt_file_remove_tree(f->folder, NULL), DT_OK);
    free(f);
    return 0;
}

static void save(fixture *f, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", f->folder, name);
    assert_int_equal(dt_file_write_atomic(path, "x", 1, 0600, NULL), DT_OK);
}

static void look(fixture *f)
{
    dt_clock_sleep_seconds(PAUSE_SECONDS);
    dt_saves_look(f->saves, f->program);
}

static void test_a_save_settles_while_the_program_runs(void **state)
{
    fixture *f = *state;

    save(f, "ck-1");
    look(f);
    assert_int_equal(f->reported, 0);
    look(f);
    assert_int_equal(f->reported, 1);
    kill(f->program, SIGKILL);
    dt_saves_end(f->saves, false);
    assert_int_equal(f->reported, 1);
}

static void test_a_save_does_not_settle_after_the_program_has_died(void **state)
{
    fixture *f = *state;
    siginfo_t info;

    save(f, "ck-1");
    look(f);
    kill(f->program, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)f->program, &info, WEXITED | WNOWAIT), 0);
    look(f); /* nobody has noticed the death yet */
    look(f);
    dt_saves_end(f->saves, false);
    assert_int_equal(f->reported, 0);
}

static void test_all_saves_of_a_program_that_ended_well_are_complete(void **state)
{
    fixture *f = *state;

    save(f, "ck-1");
    dt_saves_end(f->saves, true);
    assert_int_equal(f->reported, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_save_settles_while_the_program_runs, begin, end),
        cmocka_unit_test_setup_teardown(test_a_save_does_not_settle_after_the_program_has_died,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_all_saves_of_a_program_that_ended_well_are_complete,
                                        begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
