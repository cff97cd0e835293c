#include "runner/supervisor/rebuild/fill.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "recipes/fields/nodes.h"
#include "runner/supervisor/collect/replay.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "runner/supervisor/folder/run_folder.h"
#include "store/repair.h"

typedef struct filling {
    dt_store *store;
    const char *run, *folder;
    dt_attempt *attempts;
    int64_t attempt_count;
    dt_arena arena;
} filling;

/* The caller releases the arena. */
static dt_status look(filling *all, dt_store *store, const char *run, dt_error *err)
{
    dt_status st;

    *all = (filling){.store = store, .run = run};
    dt_arena_init(&all->arena, 0);
    DT_TRY(dt_run_path(&all->folder, run, NULL, &all->arena, err));
    DT_TRY(
        dt_store_attempt_list(store, &all->attempts, &all->attempt_count, run, &all->arena, err));
out:
    return st;
}

/* Finds the nodes of an attempt, from its folder or else from the store. */
static dt_status find(dt_replay *out, filling *all, int64_t attempt, dt_error *err)
{
    dt_status st = DT_OK;
    dt_node *rows, *nodes;
    int64_t count;
    dt_attempt_record record;

    *out = (dt_replay){.store = all->store,
                       .run = all->run,
                       .folder = all->folder,
                       .attempt = attempt,
                       .mend = true};
    if (dt_attempt_record_read(&record, all->folder, attempt, &all->arena, NULL) == DT_OK) {
        out->nodes = record.nodes;
        out->node_count = record.node_count;
        goto out;
    }
    DT_TRY(dt_store_node_list(all->store, &rows, &count, all->run, attempt, &all->arena, err));
    for (int64_t i = 0; i < count; i++)
        if (rows[i].node >= DT_NODES_MAX)
            DT_THROW(err, DT_ERR_CORRUPT,
                     "run '%s', attempt %lld: invalid node %lld in the history", all->run,
                     (long long)attempt, (long long)rows[i].node);
    for (int64_t i = 0; i < count; i++)
        out->node_count = rows[i].node >= out->node_count ? rows[i].node + 1 : out->node_count;
    nodes = dt_arena_alloc_array(&all->arena, (size_t)out->node_count + 1, sizeof(*nodes));
    for (int64_t i = 0; i < out->node_count; i++)
        nodes[i] = (dt_node){.node = i, .name = "", .state = "lost", .boot_id = ""};
    for (int64_t i = 0; i < count; i++)
        nodes[rows[i].node] = rows[i];
    out->nodes = nodes;
out:
    return st;
}

static bool has_ended(const filling *all, int64_t i)
{
    return dt_run_state_is_terminal(all->attempts[i].state);
}

dt_status dt_fill_missing_of(int64_t *missing, dt_store *store, const char *run, int64_t attempt,
                             int64_t node, dt_error *err)
{
    dt_replay what;
    filling all;
    dt_status st;

    *missing = 0;
    DT_TRY(look(&all, store, run, err));
    DT_TRY(find(&what, &all, attempt, err));
    DT_TRY(dt_replay_compare(missing, &what, node, err));
out:
    dt_arena_release(&all.arena);
    return st;
}

static dt_status compare(int64_t *missing, filling *all, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t of_one;
    dt_replay what;

    *missing = 0;
    for (int64_t i = 0; i < all->attempt_count; i++) {
        if (!has_ended(all, i))
            continue;
        DT_TRY(find(&what, all, all->attempts[i].attempt, err));
        DT_TRY(dt_replay_compare(&of_one, &what, -1, err));
        *missing += of_one;
    }
out:
    return st;
}

dt_status dt_fill_missing(int64_t *missing, dt_store *store, const char *run, dt_error *err)
{
    filling all;
    dt_status st;

    *missing = 0;
    DT_TRY(look(&all, store, run, err));
    DT_TRY(compare(missing, &all, err));
out:
    dt_arena_release(&all.arena);
    return st;
}

/* Adds missing node rows, so that nodes where something may be left are asked again. */
static dt_status add_nodes(filling *all, const dt_replay *what, dt_error *err)
{
    dt_status st;
    dt_node *rows;
    int64_t count;

    DT_TRY(
        dt_store_node_list(all->store, &rows, &count, all->run, what->attempt, &all->arena, err));
    for (int64_t i = 0; i < what->node_count; i++) {
        dt_node row = what->nodes[i];
        bool known = false;

        for (int64_t j = 0; j < count; j++)
            known = known || rows[j].node == row.node;
        if (strcmp(row.state, "released") != 0)
            row.state = "lost";
        row.acknowledged = 0;
        if (!known)
            DT_TRY(dt_store_node_set(all->store, all->run, what->attempt, &row, err));
    }
out:
    return st;
}

/* Writes the rows of an attempt. Rows that come from a damaged file may be wrong: if the
 * journals, whose lines have checksums, are complete, they replace all of the attempt's rows. */
static dt_status write_attempt(filling *all, const dt_replay *what, bool replace, dt_error *err)
{
    dt_status st;
    bool whole;

    DT_TRY(add_nodes(all, what, err));
    DT_TRY(dt_replay_write(&whole, what, err));
    if (replace && whole && what->node_count > 0) {
        DT_TRY(dt_store_attempt_clear(all->store, all->run, what->attempt, err));
        DT_TRY(dt_replay_write(&whole, what, err));
    }
out:
    return st;
}

static dt_status write_all(filling *all, bool replace, dt_error *err)
{
    bool begun = false;
    dt_status st;
    dt_replay what;

    DT_TRY(dt_store_begin(all->store, err));
    begun = true;
    for (int64_t i = 0; i < all->attempt_count; i++) {
        if (!has_ended(all, i))
            continue;
        DT_TRY(find(&what, all, all->attempts[i].attempt, err));
        DT_TRY(write_attempt(all, &what, replace, err));
    }
    DT_TRY(dt_store_commit(all->store, err));
    begun = false;
    DT_TRY(dt_store_pyramid_renew(all->store, all->run, err));
out:
    if (begun)
        dt_store_rollback(all->store);
    return st;
}

dt_status dt_fill_run(int64_t *filled, dt_store *store, const char *run, bool of_damaged,
                      dt_error *err)
{
    dt_error busy = DT_ERROR_INIT;
    const char *path;
    filling all;
    dt_status st;
    int lock = -1;

    *filled = 0;
    DT_TRY(look(&all, store, run, err));
    if (!dt_file_exists(all.folder))
        goto out;
    DT_TRY(dt_run_check_owner(run, all.folder, err));
    DT_TRY(dt_run_path(&path, run, "supervisor.lock", &all.arena, err));
    st = dt_file_lock(&lock, path, &busy);
    if (st == DT_ERR_BUSY) {
        st = DT_OK;
        goto out;
    }
    if (st != DT_OK)
        DT_THROW(err, st, "%s", busy.message);
    DT_TRY(compare(filled, &all, err));
    if (*filled > 0 || of_damaged)
        DT_TRY(write_all(&all, of_damaged, err));
out:
    if (lock >= 0)
        close(lock);
    dt_arena_release(&all.arena);
    return st;
}
