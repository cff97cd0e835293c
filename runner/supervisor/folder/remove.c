#include "runner/supervisor/folder/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "runner/node_setup/node_setup.h"

#define HOLD_SECONDS 3.0 /* most that a removal waits for gc or a leaving supervisor */

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

/* Checks again that the run has ended: with both locks held nobody supervises or resumes it. */
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

/* Holds the run; waits a moment for gc, or for a supervisor that is just leaving. */
static dt_status hold_soon(int fds[2], dt_store *store, const char *run, dt_arena *arena,
                           dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + HOLD_SECONDS;

    for (;;) {
        dt_error problem = DT_ERROR_INIT;
        dt_status st = dt_run_hold(fds, store, run, arena, &problem);

        if (st == DT_OK)
            return st;
        if (st != DT_ERR_BUSY || dt_clock_monotonic_seconds() > deadline)
            return DT_FAIL(err, st, "%s", problem.message);
        dt_clock_sleep_seconds(0.02);
    }
}

/* The run's folder, and its name while it is being removed. */
typedef struct removal {
    const char *runs, *folder, *aside;
} removal;

static dt_status find_places(removal *out, const char *run, dt_arena *arena, dt_error *err)
{
    const char *slash;
    dt_status st;

    DT_TRY(dt_run_path(&out->folder, run, NULL, arena, err));
    slash = strrchr(out->folder, '/');
    out->runs = dt_arena_strndup(arena, out->folder, (size_t)(slash - out->folder));
    out->aside = dt_arena_printf(arena, "%s/" DT_REMOVED_PREFIX "%s", out->runs, run);
out:
    return st;
}

/* Removes the rows and renames the folder in one transaction: if the rows cannot be removed,
 * nothing changes. */
static dt_status remove_rows(dt_store *store, const char *run, const removal *places, dt_error *err)
{
    bool begun = false, moved = false;
    dt_status st;

    DT_TRY(dt_store_begin(store, err));
    begun = true;
    DT_TRY(dt_store_run_remove(store, run, err));
    if (dt_file_exists(places->folder)) {
        DT_TRY(dt_file_remove_tree(places->aside, err)); /* left from an earlier run with this id */
        if (rename(places->folder, places->aside) != 0)
            DT_THROW(err, DT_ERR_IO, "cannot remove '%s': %s", places->folder, strerror(errno));
        moved = true;
        DT_TRY(
            dt_file_sync_dir(places->runs, err)); /* otherwise a power loss could undo the rename */
    }
    DT_TRY(dt_store_commit(store, err));
    begun = false;
out:
    if (begun)
        dt_store_rollback(store);
    if (begun && moved)
        (void)rename(places->aside, places->folder);
    return st;
}

/* Removes the labels last: as long as anything is left, the run's name can be read. */
dt_status dt_removal_finish(const char *aside, dt_error *err)
{
    DIR *dir = opendir(aside);
    struct dirent *entry;
    dt_status st = DT_OK;
    dt_strbuf path;

    dt_strbuf_init(&path);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            strcmp(entry->d_name, DT_LABELS_FILE) == 0)
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s", aside, entry->d_name);
        if (dt_file_remove_tree(path.data, err) != DT_OK)
            st = DT_ERR_IO;
    }
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&path);
    return st == DT_OK ? dt_file_remove_tree(aside, err) : st;
}

/* True if `ref` is the id or name of a run whose removal was interrupted. */
static bool is_called(const char *runs, const char *id, const char *ref, dt_arena *arena)
{
    const char *aside = dt_arena_printf(arena, "%s/" DT_REMOVED_PREFIX "%s", runs, id);
    dt_run run = {.name = ""};

    dt_labels_read(&run, aside, arena);
    return strcmp(id, ref) == 0 || strcmp(run.name, ref) == 0;
}

dt_status dt_removal_find(const char **id, const char **aside, const char *ref, dt_arena *arena,
                          dt_error *err)
{
    static const char prefix[] = DT_REMOVED_PREFIX;
    struct dirent *entry;
    DIR *dir = NULL;
    dt_status st;
    removal places;

    *id = *aside = NULL;
    DT_TRY(find_places(&places, "any", arena, err));
    dir = opendir(places.runs);
    while (dir != NULL && *id == NULL && (entry = readdir(dir)) != NULL) {
        const char *found = entry->d_name + strlen(prefix);

        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
            !is_called(places.runs, found, ref, arena))
            continue;
        *id = dt_arena_strdup(arena, found);
        *aside = dt_arena_printf(arena, "%s/%s", places.runs, entry->d_name);
    }
out:
    if (dir != NULL)
        closedir(dir);
    return st;
}

dt_status dt_run_remove(dt_store *store, const char *run, dt_arena *arena, dt_error *err)
{
    int fds[2] = {-1, -1};
    dt_status st;
    removal places;

    DT_TRY(find_places(&places, run, arena, err));
    if (dt_file_exists(places.folder))
        DT_TRY(hold_soon(fds, store, run, arena, err));
    else
        DT_TRY(check_ended(store, run, arena, err));
    DT_TRY(remove_rows(store, run, &places, err));
    DT_TRY(dt_store_sync(store, err));
    st = dt_removal_finish(places.aside, err);
    if (st != DT_OK)
        dt_error_prefix(err,
                        "run '%s' is removed from the history, but files of it are left in '%s' "
                        "('dtrun rm %s' again removes them)",
                        run, places.aside, run);
out:
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return st;
}

/* --- on other machines */

typedef struct wiped {
    const char **nodes;
    int64_t count, capacity;
} wiped;

static bool is_wiped(const wiped *wiped_nodes, const char *node)
{
    bool found = false;

    for (int64_t i = 0; i < wiped_nodes->count; i++)
        found = found || strcmp(wiped_nodes->nodes[i], node) == 0;
    return found;
}

static dt_status wipe(const dt_node_layout *place, const dt_run *run, bool force,
                      void (*problem)(const char *message), dt_error *err)
{
    dt_error cause = DT_ERROR_INIT;
    dt_status st = dt_node_wipe(place, &cause);

    if (st == DT_OK)
        return DT_OK;
    dt_error_prefix(&cause, "files of run '%s' are left on '%s' below '%s'", run->id, place->node,
                    place->workdir);
    if (!force)
        return DT_FAIL(err, st, "%s (--force removes the run without them)", cause.message);
    problem(cause.message);
    return DT_OK;
}

dt_status dt_run_wipe_nodes(const dt_run *run, bool force, void (*problem)(const char *message),
                            dt_arena *arena, dt_error *err)
{
    wiped done = {0};
    const char *folder;
    dt_status st;

    DT_TRY(dt_run_path(&folder, run->id, NULL, arena, err));
    for (int64_t attempt = run->attempt; attempt >= 1; attempt--)
        for (int64_t node = 0;; node++) {
            const char *here = dt_arena_printf(arena, "%s/attempt-%lld/node-%lld", folder,
                                               (long long)attempt, (long long)node);
            dt_node_layout place;

            if (!dt_file_exists(here))
                break;
            if (dt_node_layout_read(&place, here, arena, NULL) != DT_OK)
                continue;
            json_decref(place.paths);
            if (place.workdir == NULL || is_wiped(&done, place.node))
                continue;
            DT_TRY(wipe(&place, run, force, problem, err));
            done.nodes =
                dt_array_room(done.nodes, done.count + 1, &done.capacity, sizeof(done.nodes[0]));
            done.nodes[done.count++] = place.node;
        }
out:
    free(done.nodes);
    return st;
}
