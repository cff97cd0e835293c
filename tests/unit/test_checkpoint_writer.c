/* writer: a background save has the state of the step at which it was started, and may be killed at any time. */
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
#include "base/log.h"
#include "checkpoint_support.h"
#include "engine/checkpoint/writer.h"

#define KILLS        25 /* DTRUN_KILLS asks for more */
#define KILL_SECONDS 0.03
/* The thread sanitizer does not know libgomp's own synchronisation. */
#ifdef __SANITIZE_THREAD__
#define COPY_THREADS 1
#else
#define COPY_THREADS 2
#endif

/* Copies the JSON, which the writer takes: ranks are separate processes in a real run. */
static dt_checkpoint_info info_of(const fake_world *world)
{
    dt_checkpoint_info info = world->info;

    info.recipe = json_deep_copy(info.recipe);
    info.tokenizer = json_deep_copy(info.tokenizer);
    return info;
}

static dt_status open_writer(dt_checkpoint_writer **out, fake_world *world,
                             dt_strategy_state *state, dt_error *err)
{
    dt_checkpoint_place place = {world->parent, true, state->comm->rank == 0};
    dt_checkpoint_keep keep = {.newest = 2};

    return dt_checkpoint_writer_open(out, &place, &keep, state, state->comm, COPY_THREADS, err);
}

/* Saves in the background, changes the state at once, and waits. */
static dt_status save_behind(fake_world *world, dt_strategy_state *state, dt_error *err)
{
    dt_checkpoint_writer *writer = NULL;
    dt_checkpoint_info info = info_of(world);
    dt_checkpoint_outcome outcome;
    dt_status st = DT_OK;

    DT_TRY(open_writer(&writer, world, state, err));
    assert_false(dt_checkpoint_writer_collect(writer, true, &outcome));
    fake_fill(state, false);
    dt_checkpoint_writer_start(writer, &info);
    fake_fill(state, true);
    assert_true(dt_checkpoint_writer_collect(writer, true, &outcome));
    assert_false(dt_checkpoint_writer_collect(writer, true, &outcome));
    assert_int_equal(outcome.step, world->info.step);
    world->saved[state->comm->rank] = outcome.saved;
    if (outcome.st != DT_OK)
        DT_THROW(err, outcome.st, "%s", outcome.err.message);
out:
    dt_checkpoint_writer_close(writer);
    return st;
}

static void test_what_is_saved_is_the_state_of_its_step(void **state)
{
    for (int layout = 0; layout < FAKE_LAYOUTS; layout++) {
        fake_world world;

        fake_world_init(&world, *state);
        world.layout = layout;
        world.ranks = layout + 1;
        world.info.step = layout;
        world.no_moments = layout == FAKE_FLAT;
        assert_int_equal(fake_world_run(&world, save_behind), DT_OK);
        assert_true(world.saved[layout].bytes == world.saved[0].bytes);
        fake_must_load(&world);
        fake_world_release(&world);
    }
}

static void test_a_save_that_fails_is_an_outcome_on_every_rank(void **state)
{
    fake_world world;

    fake_world_init(&world, *state);
    world.ranks = 2;
    world.layout = FAKE_FLAT;
    assert_int_equal(dt_file_write_atomic(world.parent, "x", 1, 0600, NULL), DT_OK);
    assert_int_equal(fake_world_run(&world, save_behind), DT_ERR_IO);
    assert_non_null(strstr(world.err[0].message, world.parent));
    assert_string_equal(world.err[1].message,
                        "rank 0 failed to begin a checkpoint; its log says why");
    fake_world_release(&world);
}

/* Closing waits for the running save. */
static dt_status save_and_close(fake_world *world, dt_strategy_state *state, dt_error *err)
{
    dt_checkpoint_writer *writer = NULL;
    dt_checkpoint_info info = info_of(world);
    dt_status st = DT_OK;

    DT_TRY(open_writer(&writer, world, state, err));
    fake_fill(state, false);
    dt_checkpoint_writer_start(writer, &info);
out:
    dt_checkpoint_writer_close(writer);
    return st;
}

static void test_closing_waits_for_the_save(void **state)
{
    fake_world world;

    fake_world_init(&world, *state);
    world.ranks = 2;
    assert_int_equal(fake_world_run(&world, save_and_close), DT_OK);
    fake_must_load(&world);
    fake_world_release(&world);
}

/* --- killed */

static int told; /* the pipe to the parent */

/* Saves one step after the other until killed, and reports each finished save. */
static dt_status save_for_ever(fake_world *world, dt_strategy_state *state, dt_error *err)
{
    dt_checkpoint_writer *writer = NULL;
    dt_checkpoint_outcome outcome;
    dt_status st = DT_OK;

    DT_TRY(open_writer(&writer, world, state, err));
    fake_fill(state, false);
    for (;; world->info.step++) {
        dt_checkpoint_info info = info_of(world);

        dt_checkpoint_writer_start(writer, &info);
        (void)dt_checkpoint_writer_collect(writer, true, &outcome);
        if (outcome.st != DT_OK)
            DT_THROW(err, outcome.st, "%s", outcome.err.message);
        if (write(told, &outcome.step, sizeof(outcome.step)) != sizeof(outcome.step))
            DT_THROW(err, DT_ERR_IO, "the parent is gone");
    }
out:
    dt_checkpoint_writer_close(writer);
    return st;
}

static int64_t newest_step(const fake_world *world)
{
    const char *path;
    int64_t step;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    assert_int_equal(dt_checkpoint_find_newest(&path, world->parent, &arena, NULL), DT_OK);
    assert_non_null(path);
    step = strtoll(strstr(path, "step-") + 5, NULL, 10);
    dt_arena_release(&arena);
    return step;
}

/* Returns the last step that a killed child has reported; `step` if it reported none. */
static int64_t killed_after(fake_world *world, double seconds, int64_t step)
{
    int pipes[2], code;
    pid_t child;

    assert_int_equal(pipe(pipes), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(pipes[0]);
        told = pipes[1];
        (void)fake_world_run(world, save_for_ever);
        _exit(1);
    }
    close(pipes[1]);
    dt_clock_sleep_seconds(seconds);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFSIGNALED(code)); /* it had not failed on its own */
    while (read(pipes[0], &step, sizeof(step)) == sizeof(step))
        ;
    close(pipes[0]);
    return step;
}

static void test_killed_at_any_time_reported_saves_still_load(void **state)
{
    const char *asked = getenv("DTRUN_KILLS");
    long kills = asked != NULL ? strtol(asked, NULL, 10) : KILLS;
    fake_world world;

    srand48(42);
    fake_world_init(&world, *state);
    world.layout = FAKE_FLAT;
    fake_must_save(&world);
    for (long i = 0; i < kills; i++) {
        int64_t done = world.info.step, newest;

        world.info.step++;
        done = killed_after(&world, drand48() * KILL_SECONDS, done);
        newest = newest_step(&world);
        /* The last save may have finished without its report. */
        assert_in_range(newest, done, done + 1);
        world.info.step = newest;
        fake_must_load(&world);
    }
    fake_world_release(&world);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, fake_folder_make, fake_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_what_is_saved_is_the_state_of_its_step),
        IN_FOLDER(test_a_save_that_fails_is_an_outcome_on_every_rank),
        IN_FOLDER(test_closing_waits_for_the_save),
        IN_FOLDER(test_killed_at_any_time_reported_saves_still_load),
    };

    setenv("DTRUN_LOG", "error", 1); /* skipped checkpoints are expected here */
    dt_log_init("test");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
