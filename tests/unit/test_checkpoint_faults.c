/* checkpoint: a save is killed, or runs out of space, at each of its system calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "checkpoint_support.h"

#define MAX_CALLS 200

typedef enum trouble { NONE, DIE_BEFORE, DIE_HALF_WAY, NO_SPACE, SHORT_WRITES } trouble;

/* Passes calls to the system, numbers and records them, and fails or kills at one of them. */
typedef struct troubled {
    dt_checkpoint_io io;
    pthread_mutex_t lock;
    trouble trouble;
    int at, calls;
    char log[MAX_CALLS][160]; /* "sync index.json": call, and last part of the path */
    char path_of_fd[1024][128];
} troubled;

/* Returns true if this call must fail. */
static bool meet(troubled *io, const char *verb, const char *path)
{
    const char *name = strrchr(path, '/');
    bool now;

    pthread_mutex_lock(&io->lock);
    assert_true(io->calls < MAX_CALLS);
    snprintf(io->log[io->calls], sizeof(io->log[0]), "%s %s", verb, name ? name + 1 : path);
    now = io->calls++ == io->at;
    if (now &&
        (io->trouble == DIE_BEFORE || (io->trouble == DIE_HALF_WAY && strcmp(verb, "write") != 0)))
        raise(SIGKILL);
    pthread_mutex_unlock(&io->lock);
    errno = ENOSPC;
    return now && io->trouble == NO_SPACE;
}

static int on_make_dir(void *self, const char *path, mode_t mode)
{
    return meet(self, "mkdir", path) ? -1 : dt_checkpoint_io_system.make_dir(NULL, path, mode);
}

static int on_open(void *self, const char *path, int flags, mode_t mode)
{
    troubled *io = self;
    int fd = meet(io, "open", path) ? -1 : dt_checkpoint_io_system.open(NULL, path, flags, mode);

    if (fd >= 0)
        snprintf(io->path_of_fd[fd], sizeof(io->path_of_fd[fd]), "%s", path);
    return fd;
}

static ssize_t on_write(void *self, int fd, const void *bytes, size_t length)
{
    troubled *io = self;
    bool fails = meet(io, "write", io->path_of_fd[fd]);
    bool half =
        io->trouble == SHORT_WRITES || (io->trouble == DIE_HALF_WAY && io->calls - 1 == io->at);
    ssize_t put;

    if (fails)
        return -1;
    put = dt_checkpoint_io_system.write(NULL, fd, bytes, half ? (length + 1) / 2 : length);
    if (half && io->trouble == DIE_HALF_WAY)
        raise(SIGKILL);
    return put;
}

static int on_sync(void *self, int fd)
{
    troubled *io = self;

    /* The calls themselves are real in other tests; here they do not sync. */
    return meet(io, "sync", io->path_of_fd[fd]) ? -1 : 0;
}

static int on_close(void *self, int fd)
{
    troubled *io = self;
    bool fails = meet(io, "close", io->path_of_fd[fd]);
    int closed = dt_checkpoint_io_system.close(NULL, fd);

    if (fails)
        errno = ENOSPC;
    return fails ? -1 : closed;
}

static int on_rename(void *self, const char *from, const char *to)
{
    return meet(self, "rename", to) ? -1 : dt_checkpoint_io_system.rename(NULL, from, to);
}

static troubled *troubled_new(trouble kind, int at)
{
    troubled *io = calloc(1, sizeof(*io));

    assert_non_null(io);
    io->io = (dt_checkpoint_io){.self = io,
                                .make_dir = on_make_dir,
                                .open = on_open,
                                .write = on_write,
                                .sync = on_sync,
                                .close = on_close,
                                .rename = on_rename};
    pthread_mutex_init(&io->lock, NULL);
    io->trouble = kind;
    io->at = at;
    return io;
}

static void troubled_free(troubled *io)
{
    pthread_mutex_destroy(&io->lock);
    free(io);
}

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *item;
    int count = 0;

    assert_non_null(dir);
    while ((item = readdir(dir)) != NULL)
        count += item->d_name[0] != '.';
    closedir(dir);
    return count;
}

/* Returns the step of the newest complete checkpoint, of which every byte loads. */
static int64_t newest_step(fake_world *world)
{
    const char *path, *dash;
    dt_arena arena;
    int64_t step;

    fake_must_load(world);
    dt_arena_init(&arena, 0);
    assert_int_equal(dt_checkpoint_find_newest(&path, world->parent, &arena, NULL), DT_OK);
    assert_non_null(path);
    dash = strstr(path, "step-");
    assert_non_null(dash);
    step = strtoll(dash + 5, NULL, 10);
    dt_arena_release(&arena);
    return step;
}

static void older_one(fake_world *world, const char *parent, int64_t ranks)
{
    fake_world_init(world, parent);
    world->ranks = ranks;
    world->layout = FAKE_FLAT;
    world->info.step = 50;
    fake_must_save(world);
    world->info.step = 100;
}

/* Returns true if the save reached the call at which it was killed. */
static bool die_and_look(fake_world *world, trouble kind, int at)
{
    pid_t child = fork();
    int64_t step;
    int code;

    assert_true(child >= 0);
    if (child == 0) {
        troubled *io = troubled_new(kind, at);

        world->io = &io->io;
        _exit(fake_world_run(world, fake_save) == DT_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFSIGNALED(code) ? WTERMSIG(code) == SIGKILL : WEXITSTATUS(code) == 0);
    step = newest_step(world);
    assert_true(step == 50 || step == 100);
    if (!WIFSIGNALED(code))
        assert_int_equal(step, 100);
    /* Remains of the killed save do not disturb, and prune removes them. */
    assert_int_equal(fake_prune(world->parent, 0), DT_OK);
    assert_int_equal(entries(world->parent), step == 100 ? 2 : 1);
    if (step == 100) {
        assert_int_equal(fake_prune(world->parent, 1), DT_OK);
        assert_int_equal(entries(world->parent), 1);
        assert_int_equal(newest_step(world), 100);
        assert_int_equal(dt_file_remove_tree(world->parent, NULL), DT_OK);
        world->info.step = 50;
        fake_must_save(world);
        world->info.step = 100;
    }
    return WIFSIGNALED(code);
}

static void killed_everywhere(const char *parent, int64_t ranks)
{
    fake_world world;

    older_one(&world, parent, ranks);
    for (trouble kind = DIE_BEFORE; kind <= DIE_HALF_WAY; kind++) {
        int at = 0;

        while (die_and_look(&world, kind, at))
            at++;
        assert_in_range(at, 25, MAX_CALLS);
    }
    fake_world_release(&world);
}

static void test_killed_at_any_call_an_older_whole_one_loads(void **state)
{
    killed_everywhere(*state, 1);
}

static void test_killed_at_any_call_of_two_ranks_an_older_whole_one_loads(void **state)
{
    killed_everywhere(*state, 2);
}

/* Repeats a killed save at the same step, without a prune between them. */
static void test_a_killed_save_is_repeated(void **state)
{
    fake_world world;
    bool died = true;

    older_one(&world, *state, 1);
    for (int at = 0; died; at++) {
        pid_t child = fork();
        int code;

        assert_true(child >= 0);
        if (child == 0) {
            world.io = &troubled_new(DIE_BEFORE, at)->io;
            _exit(fake_world_run(&world, fake_save) == DT_OK ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &code, 0), child);
        died = WIFSIGNALED(code);
        fake_must_save(&world);
        assert_int_equal(newest_step(&world), 100);
        assert_int_equal(fake_prune(world.parent, 1), DT_OK);
    }
    fake_world_release(&world);
}

static void full_disk_everywhere(const char *parent, int64_t ranks)
{
    fake_world world;
    int failures = 0;
    bool met = true;

    older_one(&world, parent, ranks);
    for (int at = 0; met; at++) {
        troubled *io = troubled_new(NO_SPACE, at);
        dt_status st;

        world.io = &io->io;
        st = fake_world_run(&world, fake_save);
        met = io->calls > at;
        world.io = &dt_checkpoint_io_system;
        for (int64_t rank = 0; rank < ranks; rank++) { /* all ranks fail alike */
            assert_int_equal(world.st[rank], st);
            assert_true(st == DT_OK || world.err[rank].message[0] != '\0');
        }
        if (st == DT_OK) { /* errors of closing a directory are ignored */
            assert_int_equal(newest_step(&world), 100);
            assert_int_equal(dt_file_remove_tree(world.parent, NULL), DT_OK);
            world.info.step = 50;
            fake_must_save(&world);
            world.info.step = 100;
        } else {
            failures++;
            assert_int_equal(st, DT_ERR_IO);
            assert_int_equal(newest_step(&world), 50);
            assert_int_equal(entries(world.parent), 1);
        }
        troubled_free(io);
    }
    assert_in_range(failures, 20, MAX_CALLS);
    fake_world_release(&world);
}

static void test_a_full_disk_leaves_nothing_behind(void **state)
{
    full_disk_everywhere(*state, 1);
}

static void test_a_full_disk_on_one_of_two_ranks_is_an_error_on_both(void **state)
{
    full_disk_everywhere(*state, 2);
}

static void test_a_full_disk_reports_the_remedy(void **state)
{
    troubled *io = troubled_new(NO_SPACE, 2); /* mkdir, open, write */
    fake_world world;

    fake_world_init(&world, *state);
    world.io = &io->io;
    assert_int_equal(fake_world_run(&world, fake_save), DT_ERR_IO);
    assert_non_null(strstr(world.err[0].message, "model-0.safetensors"));
    assert_non_null(strstr(world.err[0].message, "No space left on device"));
    assert_non_null(strstr(world.err[0].message, "checkpoint.keep"));
    fake_world_release(&world);
    troubled_free(io);
}

/* The kernel refuses writes beyond the limit; nothing is simulated. */
static void test_a_file_size_limit_is_met_like_a_full_disk(void **state)
{
    struct rlimit before, small;
    fake_world world;
    dt_status st;

    older_one(&world, *state, 1);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 700;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    st = fake_world_run(&world, fake_save);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(st, DT_ERR_IO);
    assert_non_null(strstr(world.err[0].message, "File too large"));
    assert_int_equal(entries(world.parent), 1);
    assert_int_equal(newest_step(&world), 50);
    fake_world_release(&world);
}

static void test_short_writes_are_continued(void **state)
{
    troubled *io = troubled_new(SHORT_WRITES, -1);
    fake_world world;

    fake_world_init(&world, *state);
    world.io = &io->io;
    fake_must_save(&world);
    fake_must_load(&world);
    fake_world_release(&world);
    troubled_free(io);
}

static void test_a_rank_without_state_fails_all_and_is_named(void **state)
{
    fake_world world;

    older_one(&world, *state, 3);
    world.failing_rank = 1;
    assert_int_equal(fake_world_run(&world, fake_save), DT_ERR_IO);
    assert_int_equal(world.st[1], DT_ERR_NOMEM);
    assert_string_equal(world.err[0].message,
                        "rank 1 failed to write its part of a checkpoint; its log says why");
    assert_string_equal(world.err[2].message, world.err[0].message);
    assert_int_equal(entries(world.parent), 1);
    assert_int_equal(fake_world_run(&world, fake_load), DT_ERR_IO);
    assert_string_equal(world.err[2].message,
                        "rank 1 failed to read the checkpoint; its log says why");
    world.failing_rank = -1;
    assert_int_equal(newest_step(&world), 50);
    fake_world_release(&world);
}

static void test_a_folder_that_cannot_be_made_is_named(void **state)
{
    fake_world world;
    char path[160];

    fake_world_init(&world, *state);
    snprintf(path, sizeof(path), "%s", world.parent);
    assert_int_equal(dt_file_write_atomic(path, "x", 1, 0600, NULL), DT_OK);
    assert_int_equal(fake_world_run(&world, fake_save), DT_ERR_IO);
    assert_non_null(strstr(world.err[0].message, path));
    fake_world_release(&world);
}

/* --- the order of calls, which a kill cannot test: unlike a power cut it loses nothing that was written */

static int call_number(const troubled *io, const char *call, int from)
{
    for (int i = from; i < io->calls; i++)
        if (strcmp(io->log[i], call) == 0)
            return i;
    fail_msg("no '%s' from call %d on", call, from);
    return -1;
}

static void test_all_is_on_the_disk_before_the_name_and_the_name_before_the_marker(void **state)
{
    static const char *const files[] = {"model-0.safetensors", "optimizer-0.safetensors",
                                        "model-1.safetensors", "optimizer-1.safetensors",
                                        "index.json"};
    troubled *io = troubled_new(NONE, -1);
    char call[160];
    fake_world world;
    int renamed, marker, at;

    fake_world_init(&world, *state);
    world.ranks = 2;
    world.layout = FAKE_FLAT;
    world.io = &io->io;
    fake_must_save(&world);
    renamed = call_number(io, "rename step-00000100", 0);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(call, sizeof(call), "sync %s", files[i]);
        at = call_number(io, call, 0);
        assert_true(at < renamed);
        snprintf(call, sizeof(call), "write %s", files[i]);
        for (int k = at; k < io->calls; k++)
            assert_string_not_equal(io->log[k], call);
        assert_true(call_number(io, "sync step-00000100.partial", at) < renamed);
    }
    marker = call_number(io, "rename complete", renamed);
    assert_true(call_number(io, "sync checkpoints", renamed) < marker);
    assert_true(call_number(io, "sync complete.partial", renamed) < marker);
    at = call_number(io, "sync step-00000100", marker);
    call_number(io, "sync checkpoints", at);
    fake_world_release(&world);
    troubled_free(io);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, fake_folder_make, fake_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_killed_at_any_call_an_older_whole_one_loads),
        IN_FOLDER(test_killed_at_any_call_of_two_ranks_an_older_whole_one_loads),
        IN_FOLDER(test_a_killed_save_is_repeated),
        IN_FOLDER(test_a_full_disk_leaves_nothing_behind),
        IN_FOLDER(test_a_full_disk_on_one_of_two_ranks_is_an_error_on_both),
        IN_FOLDER(test_a_full_disk_reports_the_remedy),
        IN_FOLDER(test_a_file_size_limit_is_met_like_a_full_disk),
        IN_FOLDER(test_short_writes_are_continued),
        IN_FOLDER(test_a_rank_without_state_fails_all_and_is_named),
        IN_FOLDER(test_a_folder_that_cannot_be_made_is_named),
        IN_FOLDER(test_all_is_on_the_disk_before_the_name_and_the_name_before_the_marker),
    };

    setenv("DTRUN_LOG", "error", 1); /* skipped checkpoints are expected here */
    dt_log_init("test");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
