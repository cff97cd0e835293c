/* runs: collects items that can be removed: checkpoints, logs and journals of ended runs, and folders of
 * ended sweeps. Removes them. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "engine/checkpoint/checkpoint.h"
#include "runner/gc/gc.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/rebuild/rebuild.h"
#include "runner/sweep/group.h"
#include "store/event.h"

static int64_t bytes_of(const char *path)
{
    struct stat info;

    if (lstat(path, &info) != 0)
        return 0;
    return S_ISDIR(info.st_mode) ? dt_tree_bytes(path) : (int64_t)info.st_blocks * 512;
}

void dt_gc_add(dt_gc *gc, dt_gc_kind kind, const char *run, const char *path, int64_t time_ms)
{
    gc->items = dt_arena_array_room(gc->arena, gc->items, gc->count + 1, &gc->capacity,
                                    sizeof(gc->items[0]));
    gc->items[gc->count++] = (dt_gc_item){
        .kind = kind, .run = run, .path = path, .bytes = bytes_of(path), .time_ms = time_ms};
}

/* Folders of ended sweeps. Their runs are ordinary runs, and are kept. */

#define GONE_PREFIX ".gone-"

/* Adds a sweep; its age counts from the time when its driver recorded the end. */
static dt_status add_one(dt_gc *gc, const char *name, dt_error *err)
{
    const char *folder, *progress;
    struct stat info;
    dt_status st = DT_OK;

    DT_TRY(dt_group_folder(&folder, name, gc->arena, err));
    progress = dt_arena_printf(gc->arena, "%s/progress.json", folder);
    if (stat(progress, &info) == 0 && info.st_uid == geteuid())
        dt_gc_add(gc, DT_GC_SWEEPS, NULL, folder, (int64_t)info.st_mtime * 1000);
out:
    return st;
}

/* Adds what an interrupted removal has left. */
static dt_status add_sweep_leftovers(dt_gc *gc, dt_error *err)
{
    struct dirent *entry;
    const char *folder;
    DIR *dir = NULL;
    dt_status st;

    DT_TRY(dt_group_folder(&folder, "", gc->arena, err));
    dir = opendir(folder);
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, GONE_PREFIX, strlen(GONE_PREFIX)) == 0)
            dt_gc_add(gc, DT_GC_LEFTOVERS, NULL,
                      dt_arena_printf(gc->arena, "%s%s", folder, entry->d_name), 0);
out:
    if (dir != NULL)
        closedir(dir);
    return st;
}

dt_status dt_gc_scan_sweeps(dt_gc *gc, dt_error *err)
{
    const char **names;
    dt_status st = DT_OK;
    int64_t count = 0;

    if (gc->kinds & 1u << DT_GC_SWEEPS)
        DT_TRY(dt_group_list(&names, &count, true, gc->arena, err));
    for (int64_t i = 0; i < count; i++)
        DT_TRY(add_one(gc, names[i], err));
    if (gc->kinds & 1u << DT_GC_LEFTOVERS)
        DT_TRY(add_sweep_leftovers(gc, err));
out:
    return st;
}

/* Removes a sweep's folder, unless the sweep was resumed since the scan. */
dt_status dt_gc_remove_sweep(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err)
{
    const char *name = strrchr(item->path, '/') + 1, *aside;
    dt_sweep_group group;
    dt_status st;
    int lock = -1;

    *removed = false;
    DT_TRY(dt_group_read(&group, name, gc->arena, err));
    DT_TRY(dt_group_hold(&lock, &group, gc->arena, err));
    DT_TRY(dt_group_read(&group, name, gc->arena, err));
    if (!group.ended)
        goto out;
    aside = dt_arena_printf(gc->arena, "%.*s" GONE_PREFIX "%s", (int)(name - item->path),
                            item->path, name);
    if (rename(item->path, aside) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot remove '%s': %s", item->path, strerror(errno));
    DT_TRY(dt_file_remove_tree(aside, err));
    *removed = true;
out:
    if (lock >= 0)
        close(lock);
    return st;
}

/* Checkpoints, logs and journals of ended runs. */

static dt_status find_beyond(const char ***paths, int64_t *count, const dt_gc *gc, const char *run,
                             dt_error *err)
{
    const dt_checkpoint_keep keep = {.newest = gc->keep, .epochs = gc->keep, .best = 1};
    const char *folder;
    dt_status st;

    *count = 0;
    DT_TRY(dt_run_path(&folder, run, "checkpoints", gc->arena, err));
    if (dt_file_exists(folder))
        DT_TRY(dt_checkpoint_beyond(paths, count, folder, &keep, gc->arena, err));
out:
    return st;
}

static dt_status add_checkpoints(dt_gc *gc, const dt_run *run, dt_error *err)
{
    const char **paths;
    dt_status st;
    int64_t count;

    DT_TRY(find_beyond(&paths, &count, gc, run->id, err));
    for (int64_t i = 0; i < count; i++)
        dt_gc_add(gc, DT_GC_CHECKPOINTS, run->id, paths[i], run->ended_ms);
out:
    return st;
}

/* Adds the files of a folder of the run whose names have this ending. */
static dt_status add_files(dt_gc *gc, dt_gc_kind kind, const dt_run *run, const char *below,
                           const char *ending, dt_error *err)
{
    const char *folder;
    struct dirent *entry;
    DIR *dir = NULL;
    dt_status st;

    DT_TRY(dt_run_path(&folder, run->id, below, gc->arena, err));
    dir = opendir(folder);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        size_t length = strlen(entry->d_name), wanted = strlen(ending);

        if (length >= wanted && strcmp(entry->d_name + length - wanted, ending) == 0)
            dt_gc_add(gc, kind, run->id, dt_arena_printf(gc->arena, "%s/%s", folder, entry->d_name),
                      run->ended_ms);
    }
out:
    if (dir != NULL)
        closedir(dir);
    return st;
}

/* Adds files of the agents' folders on this machine, but not of an agent that has not reported
 * its end: it may still have events to send. */
static dt_status add_of_agents(dt_gc *gc, dt_gc_kind kind, const dt_run *run, const char *ending,
                               dt_error *err)
{
    dt_status st = DT_OK;
    dt_node *nodes;
    int64_t count, first;
    char below[64];

    for (int64_t attempt = 1; attempt <= run->attempt; attempt++) {
        DT_TRY(dt_store_node_list(gc->store, &nodes, &count, run->id, attempt, gc->arena, err));
        for (int64_t i = 0; i < count; i++) {
            if (strcmp(nodes[i].state, "released") != 0)
                continue;
            snprintf(below, sizeof(below), "attempt-%lld/node-%lld", (long long)attempt,
                     (long long)nodes[i].node);
            first = gc->count;
            DT_TRY(add_files(gc, kind, run, below, ending, err));
            for (int64_t j = first; j < gc->count; j++) {
                gc->items[j].attempt = attempt;
                gc->items[j].node = nodes[i].node;
            }
        }
    }
out:
    return st;
}

/* Returns true if another command has removed the run, or is removing it: its files disappear meanwhile. */
static bool is_gone(dt_gc *gc, const char *run)
{
    const char *folder;
    dt_run row;

    return dt_run_path(&folder, run, NULL, gc->arena, NULL) == DT_OK &&
           (!dt_file_exists(folder) ||
            dt_store_run_find(gc->store, &row, run, gc->arena, NULL) == DT_ERR_NOT_FOUND);
}

static dt_status scan_run(dt_gc *gc, const dt_run *run, dt_error *err)
{
    dt_error other = DT_ERROR_INIT;
    const char *folder;
    dt_status st;

    DT_TRY(dt_run_path(&folder, run->id, NULL, gc->arena, err));
    if ((gc->spared != NULL && strcmp(run->id, gc->spared) == 0) ||
        !dt_run_state_is_terminal(run->state) || !dt_file_exists(folder) ||
        dt_run_check_owner(run->id, folder, &other) != DT_OK)
        return DT_OK;
    if (gc->kinds & 1u << DT_GC_CHECKPOINTS)
        DT_TRY(add_checkpoints(gc, run, err));
    if (gc->kinds & 1u << DT_GC_LOGS) {
        DT_TRY(add_files(gc, DT_GC_LOGS, run, "logs", ".log", err));
        DT_TRY(add_files(gc, DT_GC_LOGS, run, NULL, ".log", err));
        DT_TRY(add_of_agents(gc, DT_GC_LOGS, run, ".log", err));
    }
    if (gc->kinds & 1u << DT_GC_JOURNALS)
        DT_TRY(add_of_agents(gc, DT_GC_JOURNALS, run, "journal.jsonl", err));
out:
    return st;
}

static dt_status look_at_run(dt_gc *gc, const dt_run *run, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = scan_run(gc, run, &problem);

    return st == DT_OK || is_gone(gc, run->id) ? DT_OK : DT_FAIL(err, st, "%s", problem.message);
}

static dt_status add_leftovers(dt_gc *gc, dt_error *err)
{
    static const char prefix[] = DT_REMOVED_PREFIX;
    const char *state, *runs;
    struct dirent *entry;
    DIR *dir = NULL;
    dt_status st;

    DT_TRY(dt_dir_path(&state, DT_DIR_STATE, gc->arena, err));
    runs = dt_arena_printf(gc->arena, "%s/runs", state);
    dir = opendir(runs);
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            dt_gc_add(gc, DT_GC_LEFTOVERS, NULL,
                      dt_arena_printf(gc->arena, "%s/%s", runs, entry->d_name), 0);
out:
    if (dir != NULL)
        closedir(dir);
    return st;
}

dt_status dt_gc_scan_runs(dt_gc *gc, dt_error *err)
{
    int64_t count;
    dt_status st;
    dt_run *runs;

    DT_TRY(dt_store_run_list(gc->store, &runs, &count, -1, 0, gc->arena, err));
    for (int64_t i = 0; i < count; i++)
        DT_TRY(look_at_run(gc, &runs[i], err));
    if (gc->kinds & 1u << DT_GC_LEFTOVERS)
        DT_TRY(add_leftovers(gc, err));
out:
    return st;
}

/* Fails unless a kept checkpoint can be read completely; only then may this one be removed. The
 * data of the newest are read once per run. */
static dt_status check_kept(dt_gc *gc, const dt_gc_item *item, dt_error *err)
{
    const char *folder;
    dt_status st = DT_OK;

    if (gc->read_run == NULL || strcmp(gc->read_run, item->run) != 0) {
        DT_TRY(dt_run_path(&folder, item->run, "checkpoints", gc->arena, err));
        DT_TRY(dt_checkpoint_find_newest(&gc->read_newest, folder, gc->arena, err));
        gc->read_run = item->run;
    }
    if (gc->read_newest == NULL || strcmp(gc->read_newest, item->path) == 0)
        DT_THROW(err, DT_ERR_CORRUPT, "keeping '%s': the newer checkpoints of run '%s' are damaged",
                 item->path, item->run);
out:
    return st;
}

/* Applies the rules again: the run may have been resumed since the scan. */
static dt_status remove_checkpoint(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err)
{
    const char **paths;
    int64_t count;
    dt_status st;

    DT_TRY(find_beyond(&paths, &count, gc, item->run, err));
    for (int64_t i = 0; i < count; i++)
        if (strcmp(paths[i], item->path) == 0) {
            DT_TRY(check_kept(gc, item, err));
            DT_TRY(dt_checkpoint_remove_unheld(removed, item->path, err));
        }
out:
    return st;
}

/* Verifies the whole store, once for all journals. */
static dt_status check_history(dt_gc *gc, dt_error *err)
{
    const char **problems;
    dt_status st = DT_OK;
    int64_t count;

    if (gc->sound)
        return DT_OK;
    DT_TRY(dt_store_sync(gc->store, err));
    DT_TRY(dt_store_verify(gc->store, &problems, &count, gc->arena, err));
    if (count > 0)
        DT_THROW(err, DT_ERR_CORRUPT, "no journal is removed: the history is damaged: %s (%s)",
                 problems[0], "'dtrun store repair'");
    gc->sound = true;
out:
    return st;
}

/* Fails unless the history is sound and durably has every row of the journal: a lost or damaged
 * history is rebuilt from journals. */
static dt_status check_journal(dt_gc *gc, const dt_gc_item *item, dt_error *err)
{
    int64_t missing = 0;
    dt_status st;

    DT_TRY(check_history(gc, err));
    DT_TRY(dt_fill_missing_of(&missing, gc->store, item->run, item->attempt, item->node, err));
    if (missing > 0)
        DT_THROW(
            err, DT_ERR_CORRUPT,
            "keeping '%s': the history lacks %lld of its rows ('dtrun store repair' adds them)",
            item->path, (long long)missing);
out:
    return st;
}

static dt_status remove_item(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err)
{
    dt_status st;
    int fds[2];

    *removed = false;
    DT_TRY(dt_run_hold(fds, gc->store, item->run, gc->arena, err));
    if (item->kind == DT_GC_CHECKPOINTS) {
        st = remove_checkpoint(gc, item, removed, err);
    } else {
        st = item->kind == DT_GC_JOURNALS ? check_journal(gc, item, err) : DT_OK;
        if (st == DT_OK)
            st = dt_file_remove_tree(item->path, err);
        *removed = st == DT_OK;
    }
    close(fds[0]);
    close(fds[1]);
out:
    return st;
}

dt_status dt_gc_remove_run_item(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = remove_item(gc, item, removed, &problem);

    return st == DT_OK || is_gone(gc, item->run) ? DT_OK : DT_FAIL(err, st, "%s", problem.message);
}
