/* cache: removes unused files from the cache of this machine.
 *
 * Every use of a cached file updates its time (runner/fetch, remote_helper), and files that a
 * process runs or reads are marked (remote_helper/remote_helper.h). While a launch prepares its nodes, files are in
 * use but not yet marked, so files are kept for a day. Contents of the folder of a run's command (files/) are kept
 * while the run can need another node, so until it ends.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "runner/gc/gc.h"
#include "runner/node_setup/remote_helper/remote_helper.h"
#include "runner/node_setup/remote_helper/spare.h"
#include "runner/node_setup/workdir/contents.h"
#include "runner/node_setup/workdir/workdir.h"
#include "runner/supervisor/folder/run_folder.h"

#define DAY_MS      ((int64_t)86400 * 1000)
#define GONE_PREFIX ".gone-"

#define PLAN_MAX_BYTES ((size_t)16 << 20)

static const char *const folders[] = {"agents",        "bundles",          "data",
                                      "digests",       DT_WORKDIRS_FOLDER, DT_SETUPS_FOLDER,
                                      DT_SPARE_FOLDER, DT_CONTENTS_FOLDER};

static bool has_ending(const char *name, const char *ending)
{
    size_t length = strlen(name), wanted = strlen(ending);

    return length >= wanted && strcmp(name + length - wanted, ending) == 0;
}

/* True if the file belongs to this user, was not requested lately, and is not in use. */
static bool is_idle(int64_t *time_ms, const dt_gc *gc, const char *cache, const char *folder,
                    const char *name, const char *path)
{
    struct stat info;

    if (lstat(path, &info) != 0 || info.st_uid != geteuid())
        return false;
    *time_ms = (int64_t)info.st_mtime * 1000;
    if (gc->now_ms - *time_ms <= DAY_MS)
        return false;
    if (strcmp(folder, DT_CONTENTS_FOLDER) == 0)
        return json_object_get(gc->contents, name) == NULL;
    return !dt_cache_is_used(cache, folder, name);
}

/* Adds the digests of the folder that a run's nodes can still need. */
static void add_contents(dt_gc *gc, const dt_run *run)
{
    const char *folder, *digest;
    json_t *plan = NULL;
    dt_tree tree;

    if (dt_run_path(&folder, run->id, NULL, gc->arena, NULL) != DT_OK ||
        dt_json_read(&plan,
                     dt_arena_printf(gc->arena, "%s/attempt-%lld/plan.json", folder,
                                     (long long)run->attempt),
                     PLAN_MAX_BYTES, NULL) != DT_OK)
        return;
    digest = json_string_value(json_object_get(plan, "tree"));
    if (digest != NULL &&
        dt_tree_read(&tree, dt_arena_printf(gc->arena, "%s/" DT_WORKDIR_TREE_FILE, folder, digest),
                     gc->arena, NULL) == DT_OK)
        for (int64_t i = 0; i < tree.count; i++)
            json_object_set_new(gc->contents, tree.entries[i].digest, json_true());
    json_decref(plan);
}

/* Finds the contents that runs which have not ended can need. */
static dt_status find_contents(dt_gc *gc, dt_error *err)
{
    dt_status st = DT_OK;
    dt_run *runs;
    int64_t count;

    if (gc->contents != NULL)
        return DT_OK;
    gc->contents = json_object();
    DT_TRY(dt_store_run_list_since(gc->store, &runs, &count, INT64_MAX, gc->arena, err));
    for (int64_t i = 0; i < count; i++)
        if (!dt_run_state_is_terminal(runs[i].state))
            add_contents(gc, &runs[i]);
out:
    return st;
}

static void look_at_folder(dt_gc *gc, const char *cache, const char *folder)
{
    const char *place = dt_arena_printf(gc->arena, "%s/%s", cache, folder);
    DIR *dir = opendir(place);
    struct dirent *entry;
    int64_t time_ms;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const char *path;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            has_ending(entry->d_name, ".lock"))
            continue;
        path = dt_arena_printf(gc->arena, "%s/%s", place, entry->d_name);
        if (is_idle(&time_ms, gc, cache, folder, entry->d_name, path))
            dt_gc_add(gc, DT_GC_CACHE, NULL, path, time_ms);
    }
    if (dir != NULL)
        closedir(dir);
}

dt_status dt_gc_scan_cache(dt_gc *gc, dt_error *err)
{
    const char *cache;
    dt_status st = DT_OK;

    if (!(gc->kinds & 1u << DT_GC_CACHE))
        return DT_OK;
    DT_TRY(dt_dir_path(&cache, DT_DIR_CACHE, gc->arena, err));
    DT_TRY(find_contents(gc, err));
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        look_at_folder(gc, cache, folders[i]);
out:
    return st;
}

/* Takes the lock that a launch holds while it fetches the same data (runner/fetch). */
static dt_status lock_fetch(int *fd, const dt_gc *gc, const char *path, dt_error *err)
{
    const char *slash = strrchr(path, '/'), *lock;

    *fd = -1;
    if (strncmp(slash + 1, "sha256-", strlen("sha256-")) != 0)
        return DT_OK;
    lock = dt_arena_printf(gc->arena, "%s.lock", path);
    return dt_file_lock(fd, lock, err);
}

/* Removes a cached file: renames it first, then checks its time again, in case a process has
 * just used it. */
dt_status dt_gc_remove_cached(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err)
{
    const char *slash = strrchr(item->path, '/'), *cache, *folder, *aside;
    dt_status st = DT_OK;
    int64_t time_ms;
    int lock = -1;

    *removed = false;
    DT_TRY(dt_dir_path(&cache, DT_DIR_CACHE, gc->arena, err));
    folder = dt_arena_strndup(gc->arena, item->path + strlen(cache) + 1,
                              (size_t)(slash - item->path) - strlen(cache) - 1);
    aside = dt_arena_printf(gc->arena, "%.*s/" GONE_PREFIX "%s", (int)(slash - item->path),
                            item->path, slash + 1);
    st = lock_fetch(&lock, gc, item->path, err);
    if (st == DT_ERR_BUSY) { /* it is being fetched */
        dt_error_clear(err);
        return DT_OK;
    }
    if (st != DT_OK || !is_idle(&time_ms, gc, cache, folder, slash + 1, item->path))
        goto out;
    if (rename(item->path, aside) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot remove '%s': %s", item->path, strerror(errno));
    if (!is_idle(&time_ms, gc, cache, folder, slash + 1, aside)) {
        (void)rename(aside, item->path);
        goto out;
    }
    DT_TRY(dt_file_remove_tree(aside, err));
    *removed = true;
out:
    if (lock >= 0)
        close(lock);
    return st;
}
