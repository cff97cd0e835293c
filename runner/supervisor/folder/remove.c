#define _GNU_SOURCE
#include "runner/supervisor/folder/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "runner/supervisor/folder/run_folder.h"

#include "base/banned.h"

static int64_t bytes_below(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    int64_t bytes = 0;
    struct stat info;

    if (dir == NULL && fd >= 0)
        close(fd);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        bytes += S_ISDIR(info.st_mode) ? bytes_below(fd, entry->d_name) : info.st_size;
    }
    if (dir != NULL)
        closedir(dir);
    return bytes;
}

int64_t dt_tree_bytes(const char *path)
{
    return bytes_below(AT_FDCWD, path);
}

static dt_status take_lock(int *fd, const char *run, const char *name, dt_arena *arena,
                           dt_error *err)
{
    const char *path;
    dt_status st;

    DT_TRY(dt_run_path(&path, run, name, arena, err));
    st = dt_file_lock(fd, path, err);
out:
    return st;
}

/* With both locks nobody supervises or resumes it; and what was seen before may be old. */
static dt_status check_ended(dt_store *store, const char *run, dt_arena *arena, dt_error *err)
{
    dt_status st;
    dt_run now;

    DT_TRY(dt_store_run_find(store, &now, run, arena, err));
    if (!dt_run_state_is_terminal(now.state))
        DT_THROW(err, DT_ERR_USAGE, "run '%s' is %s: 'dtrun stop %s' ends it", run,
                 dt_run_state_name(now.state), run);
out:
    return st;
}

dt_status dt_run_hold(int fds[2], dt_store *store, const char *run, dt_arena *arena, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    const char *folder;
    dt_status st;

    fds[0] = fds[1] = -1;
    DT_TRY(dt_run_path(&folder, run, NULL, arena, err));
    DT_TRY(dt_run_check_owner(run, folder, err));
    st = take_lock(&fds[0], run, "supervisor.lock", arena, &problem);
    if (st == DT_OK)
        st = take_lock(&fds[1], run, "resume.lock", arena, &problem);
    if (st == DT_ERR_BUSY)
        DT_THROW(err, st, "run '%s' is supervised or resumed just now", run);
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    DT_TRY(check_ended(store, run, arena, err));
out:
    for (int i = 0; st != DT_OK && i < 2; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
    return st;
}

static dt_status mark(dt_store *store, const char *run, const char *folder, const char *removed,
                      dt_arena *arena, dt_error *err)
{
    dt_status st;
    int fds[2];

    DT_TRY(dt_run_hold(fds, store, run, arena, err));
    st = dt_file_remove_tree(removed, err); /* of a run with this id that was removed before */
    if (st == DT_OK && rename(folder, removed) != 0)
        st = DT_FAIL(err, DT_ERR_IO, "cannot remove '%s': %s", folder, strerror(errno));
    close(fds[0]);
    close(fds[1]);
out:
    return st;
}

dt_status dt_run_remove(dt_store *store, const char *run, dt_arena *arena, dt_error *err)
{
    const char *folder, *removed, *slash;
    dt_status st;

    DT_TRY(dt_run_path(&folder, run, NULL, arena, err));
    slash = strrchr(folder, '/');
    removed =
        dt_arena_printf(arena, "%.*s/" DT_REMOVED_PREFIX "%s", (int)(slash - folder), folder, run);
    if (removed == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    if (dt_file_exists(folder))
        DT_TRY(mark(store, run, folder, removed, arena, err));
    else
        DT_TRY(check_ended(store, run, arena, err));
    DT_TRY(dt_file_remove_tree(removed, err));
    DT_TRY(dt_store_run_remove(store, run, err));
out:
    return st;
}
