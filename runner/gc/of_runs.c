/* of_runs: what runs that have ended can do without. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "engine/checkpoint/checkpoint.h"
#include "runner/gc/gc.h"
#include "runner/supervisor/folder/remove.h"
#include "runner/supervisor/folder/run_folder.h"

#include "base/banned.h"

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
        DT_TRY(dt_gc_add(gc, DT_GC_CHECKPOINTS, run->id, paths[i], run->ended_ms, err));
out:
    return st;
}

/* Files of a folder of the run whose names end so. */
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
            DT_TRY(dt_gc_add(gc, kind, run->id,
                             dt_arena_printf(gc->arena, "%s/%s", folder, entry->d_name),
                             run->ended_ms, err));
    }
out:
    if (dir != NULL)
        closedir(dir);
    return st;
}

/* Of the folders that agents had here. One that has not said that it is done may have to speak yet. */
static dt_status add_of_agents(dt_gc *gc, dt_gc_kind kind, const dt_run *run, const char *ending,
                               dt_error *err)
{
    dt_status st = DT_OK;
    dt_node *nodes;
    int64_t count;
    char below[64];

    for (int64_t attempt = 1; attempt <= run->attempt; attempt++) {
        DT_TRY(dt_store_node_list(gc->store, &nodes, &count, run->id, attempt, gc->arena, err));
        for (int64_t i = 0; i < count; i++) {
            if (strcmp(nodes[i].state, "released") != 0)
                continue;
            snprintf(below, sizeof(below), "attempt-%lld/node-%lld", (long long)attempt,
                     (long long)nodes[i].node);
            DT_TRY(add_files(gc, kind, run, below, ending, err));
        }
    }
out:
    return st;
}

static dt_status look_at_run(dt_gc *gc, const dt_run *run, dt_error *err)
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

static dt_status add_leftovers(dt_gc *gc, dt_error *err)
{
    static const char prefix[] = DT_REMOVED_PREFIX;
    const char *state, *runs;
    struct dirent *entry;
    DIR *dir = NULL;
    dt_status st;

    DT_TRY(dt_dir_path(&state, DT_DIR_STATE, gc->arena, err));
    runs = dt_arena_printf(gc->arena, "%s/runs", state);
    dir = runs != NULL ? opendir(runs) : NULL;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            DT_TRY(dt_gc_add(gc, DT_GC_LEFTOVERS, NULL,
                             dt_arena_printf(gc->arena, "%s/%s", runs, entry->d_name), 0, err));
out:
    if (dir != NULL)
        closedir(dir);
    return st;
}

dt_status dt_gc_look_at_runs(dt_gc *gc, dt_error *err)
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

/* By the rules of this moment: the run may have been resumed since it was looked at. */
static dt_status remove_checkpoint(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err)
{
    const char **paths;
    int64_t count;
    dt_status st;

    DT_TRY(find_beyond(&paths, &count, gc, item->run, err));
    for (int64_t i = 0; i < count; i++)
        if (strcmp(paths[i], item->path) == 0)
            DT_TRY(dt_checkpoint_remove_unheld(removed, item->path, err));
out:
    return st;
}

dt_status dt_gc_remove_of_run(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err)
{
    dt_status st;
    int fds[2];

    *removed = false;
    DT_TRY(dt_run_hold(fds, gc->store, item->run, gc->arena, err));
    if (item->kind == DT_GC_CHECKPOINTS) {
        st = remove_checkpoint(gc, item, removed, err);
    } else {
        st = dt_file_remove_tree(item->path, err);
        *removed = st == DT_OK;
    }
    close(fds[0]);
    close(fds[1]);
out:
    return st;
}
