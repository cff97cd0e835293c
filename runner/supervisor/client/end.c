/* end: ends a supervisor from outside, for good. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "runner/supervisor/client/client_int.h"
#include "runner/supervisor/folder/stop_mark.h"
#include "runner/supervisor/supervisor.h"

#define TAKE_SECONDS 5.0
#define LOOK_SECONDS 0.05

/* Returns the newest attempt that has a folder; the store may be behind. */
static int64_t newest_attempt(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int64_t newest = 1, attempt;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        attempt =
            strncmp(entry->d_name, "attempt-", 8) == 0 ? strtoll(entry->d_name + 8, NULL, 10) : 0;
        newest = attempt > newest ? attempt : newest;
    }
    if (dir != NULL)
        closedir(dir);
    return newest;
}

dt_status dt_supervisor_mark_stop(const char *run, bool now, dt_error *err)
{
    const char *folder;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_run_path(&folder, run, NULL, &arena, err));
    DT_TRY(dt_run_check_owner(run, folder, err));
    DT_TRY(dt_stop_mark_ask(folder, newest_attempt(folder), now, err));
out:
    dt_arena_release(&arena);
    return st;
}

/* Checks that the lock file has room for the mark, before the supervisor is killed. */
static dt_status check_place(const char *lock, dt_error *err)
{
    int fd = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    dt_status st = fd >= 0 ? dt_stop_mark_reserve(fd, err)
                           : DT_FAIL(err, DT_ERR_IO, "cannot open '%s': %s", lock, strerror(errno));

    if (fd >= 0)
        close(fd);
    return st;
}

/* Takes the supervisor's lock, and kills its holder, including a supervisor that is started
 * meanwhile (the driver of a sweep asks for the stop repeatedly). DT_ERR_BUSY: the holder
 * survives, or is not visible from here; else the status of dt_file_lock. */
static dt_status take_lock(int *lock, const char *path, const char *run, dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + TAKE_SECONDS;
    dt_status st;
    pid_t pid;

    while ((st = dt_file_lock(lock, path, err)) == DT_ERR_BUSY &&
           dt_clock_monotonic_seconds() < deadline) {
        pid = dt_lock_holder_find(path, run);
        if (pid != 0)
            (void)dt_lock_holder_kill(pid, path, run);
        else /* the holder is just starting, or on another machine */
            dt_clock_sleep_seconds(LOOK_SECONDS);
    }
    return st == DT_ERR_BUSY ? DT_FAIL(err, DT_ERR_BUSY, "the run's supervisor is on another host")
                             : st;
}

dt_status dt_supervisor_end(int *lock, const char *run, dt_error *err)
{
    const char *folder, *path;
    dt_status st;
    dt_arena arena;

    *lock = -1;
    dt_arena_init(&arena, 0);
    DT_TRY(dt_run_path(&folder, run, NULL, &arena, err));
    DT_TRY(dt_run_path(&path, run, "supervisor.lock", &arena, err));
    DT_TRY(check_place(path, err));
    DT_TRY(take_lock(lock, path, run, err));
    DT_TRY(dt_stop_mark_set(*lock, newest_attempt(folder), err));
out:
    if (st != DT_OK && *lock >= 0) {
        close(*lock);
        *lock = -1;
    }
    dt_arena_release(&arena);
    return st;
}
