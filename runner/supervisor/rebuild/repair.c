/* repair: adds rows that the history lacks, from journals (fill), and rebuilds a damaged history from
 * everything that is left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "recipes/fields/nodes.h"
#include "runner/supervisor/collect/replay.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/rebuild/rebuild.h"
#include "store/repair.h"

/* --- rows from journals */

typedef struct filling {
    dt_store *store;
    const char *run, *folder;
    dt_attempt *attempts;
    int64_t attempt_count;
    dt_arena arena;
} filling;

/* The caller releases the arena. */
static dt_status look(filling *repair, dt_store *store, const char *run, dt_error *err)
{
    dt_status st;

    *repair = (filling){.store = store, .run = run};
    dt_arena_init(&repair->arena, 0);
    DT_TRY(dt_run_path(&repair->folder, run, NULL, &repair->arena, err));
    DT_TRY(dt_store_attempt_list(store, &repair->attempts, &repair->attempt_count, run,
                                 &repair->arena, err));
out:
    return st;
}

/* Finds the nodes of an attempt, from its folder or else from the store. */
static dt_status find(dt_replay *out, filling *repair, int64_t attempt, dt_error *err)
{
    dt_status st = DT_OK;
    dt_node *rows, *nodes;
    int64_t count;
    dt_attempt_record record;

    *out = (dt_replay){.store = repair->store,
                       .run = repair->run,
                       .folder = repair->folder,
                       .attempt = attempt,
                       .mend = true};
    if (dt_attempt_record_read(&record, repair->folder, attempt, &repair->arena, NULL) == DT_OK) {
        out->nodes = record.nodes;
        out->node_count = record.node_count;
        goto out;
    }
    DT_TRY(dt_store_node_list(repair->store, &rows, &count, repair->run, attempt, &repair->arena,
                              err));
    for (int64_t i = 0; i < count; i++)
        if (rows[i].node >= DT_NODES_MAX)
            DT_THROW(err, DT_ERR_CORRUPT,
                     "run '%s', attempt %lld: invalid node %lld in the history", repair->run,
                     (long long)attempt, (long long)rows[i].node);
    for (int64_t i = 0; i < count; i++)
        out->node_count = rows[i].node >= out->node_count ? rows[i].node + 1 : out->node_count;
    nodes = dt_arena_alloc_array(&repair->arena, (size_t)out->node_count + 1, sizeof(*nodes));
    for (int64_t i = 0; i < out->node_count; i++)
        nodes[i] = (dt_node){.node = i, .name = "", .state = "lost", .boot_id = ""};
    for (int64_t i = 0; i < count; i++)
        nodes[rows[i].node] = rows[i];
    out->nodes = nodes;
out:
    return st;
}

static bool has_ended(const filling *repair, int64_t i)
{
    return dt_run_state_is_terminal(repair->attempts[i].state);
}

dt_status dt_fill_missing_of(int64_t *missing, dt_store *store, const char *run, int64_t attempt,
                             int64_t node, dt_error *err)
{
    dt_replay request;
    filling repair;
    dt_status st;

    *missing = 0;
    DT_TRY(look(&repair, store, run, err));
    DT_TRY(find(&request, &repair, attempt, err));
    DT_TRY(dt_replay_compare(missing, &request, node, err));
out:
    dt_arena_release(&repair.arena);
    return st;
}

static dt_status compare(int64_t *missing, filling *repair, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t of_one;
    dt_replay request;

    *missing = 0;
    for (int64_t i = 0; i < repair->attempt_count; i++) {
        if (!has_ended(repair, i))
            continue;
        DT_TRY(find(&request, repair, repair->attempts[i].attempt, err));
        DT_TRY(dt_replay_compare(&of_one, &request, -1, err));
        *missing += of_one;
    }
out:
    return st;
}

dt_status dt_fill_missing(int64_t *missing, dt_store *store, const char *run, dt_error *err)
{
    filling repair;
    dt_status st;

    *missing = 0;
    DT_TRY(look(&repair, store, run, err));
    DT_TRY(compare(missing, &repair, err));
out:
    dt_arena_release(&repair.arena);
    return st;
}

/* Adds missing node rows, so that nodes where something may be left are asked again. */
static dt_status add_nodes(filling *repair, const dt_replay *request, dt_error *err)
{
    dt_status st;
    dt_node *rows;
    int64_t count;

    DT_TRY(dt_store_node_list(repair->store, &rows, &count, repair->run, request->attempt,
                              &repair->arena, err));
    for (int64_t i = 0; i < request->node_count; i++) {
        dt_node row = request->nodes[i];
        bool known = false;

        for (int64_t j = 0; j < count; j++)
            known = known || rows[j].node == row.node;
        if (strcmp(row.state, "released") != 0)
            row.state = "lost";
        row.acknowledged = 0;
        if (!known)
            DT_TRY(dt_store_node_set(repair->store, repair->run, request->attempt, &row, err));
    }
out:
    return st;
}

/* Writes the rows of an attempt. Rows that come from a damaged file may be wrong: if the
 * journals, whose lines have checksums, are complete, they replace all of the attempt's rows. */
static dt_status write_attempt(filling *repair, const dt_replay *request, bool replace,
                               dt_error *err)
{
    dt_status st;
    bool whole;

    DT_TRY(add_nodes(repair, request, err));
    DT_TRY(dt_replay_write(&whole, request, err));
    if (replace && whole && request->node_count > 0) {
        DT_TRY(dt_store_attempt_clear(repair->store, repair->run, request->attempt, err));
        DT_TRY(dt_replay_write(&whole, request, err));
    }
out:
    return st;
}

static dt_status write_all(filling *repair, bool replace, dt_error *err)
{
    bool begun = false;
    dt_status st;
    dt_replay request;

    DT_TRY(dt_store_begin(repair->store, err));
    begun = true;
    for (int64_t i = 0; i < repair->attempt_count; i++) {
        if (!has_ended(repair, i))
            continue;
        DT_TRY(find(&request, repair, repair->attempts[i].attempt, err));
        DT_TRY(write_attempt(repair, &request, replace, err));
    }
    DT_TRY(dt_store_commit(repair->store, err));
    begun = false;
    DT_TRY(dt_store_pyramid_renew(repair->store, repair->run, err));
out:
    if (begun)
        dt_store_rollback(repair->store);
    return st;
}

dt_status dt_fill_run(int64_t *filled, dt_store *store, const char *run, bool of_damaged,
                      dt_error *err)
{
    dt_error busy = DT_ERROR_INIT;
    const char *path;
    filling repair;
    dt_status st;
    int lock = -1;

    *filled = 0;
    DT_TRY(look(&repair, store, run, err));
    if (!dt_file_exists(repair.folder))
        goto out;
    DT_TRY(dt_run_check_owner(run, repair.folder, err));
    DT_TRY(dt_run_path(&path, run, "supervisor.lock", &repair.arena, err));
    st = dt_file_lock(&lock, path, &busy);
    if (st == DT_ERR_BUSY) {
        st = DT_OK;
        goto out;
    }
    if (st != DT_OK)
        DT_THROW(err, st, "%s", busy.message);
    DT_TRY(compare(filled, &repair, err));
    if (*filled > 0 || of_damaged)
        DT_TRY(write_all(&repair, of_damaged, err));
out:
    if (lock >= 0)
        close(lock);
    dt_arena_release(&repair.arena);
    return st;
}

/* --- a damaged history */

#define TRIES_MOST 10

static const char *const endings[] = {"", "-wal", "-shm"};
enum { ENDINGS = sizeof(endings) / sizeof(endings[0]), SHARED_MEMORY = 2 };

typedef struct repair {
    dt_repaired *out;
    const char *state, *path, *fresh; /* store.db, and the new file next to it */
    const char *done;                 /* name of the new file once it is complete */
    dt_arena *arena;
} repair;

/* Fails if a run is supervised: its supervisor would keep writing to the old file. */
static dt_status check_idle(const repair *r, dt_error *err)
{
    const char *runs = dt_arena_printf(r->arena, "%s/runs", r->state), *path;
    DIR *dir = opendir(runs);
    struct dirent *entry;
    dt_status st = DT_OK;
    int lock;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        path = dt_arena_printf(r->arena, "%s/%s/supervisor.lock", runs, entry->d_name);
        if (entry->d_name[0] == '.' || !dt_file_exists(path))
            continue;
        if (dt_file_lock(&lock, path, NULL) == DT_ERR_BUSY)
            DT_THROW(err, DT_ERR_BUSY,
                     "run '%s' is supervised just now: 'dtrun stop --now %s', or wait for its end",
                     entry->d_name, entry->d_name);
        if (lock >= 0)
            close(lock);
    }
out:
    if (dir != NULL)
        closedir(dir);
    return st;
}

static dt_status fill_all(repair *r, dt_store *store, bool damaged, dt_error *err)
{
    dt_run_mark *marks;
    dt_status st;

    dt_restore_runs(store);
    DT_TRY(dt_store_run_marks(store, &marks, &r->out->runs, r->arena, err));
    for (int64_t i = 0; i < r->out->runs; i++) {
        dt_error problem = DT_ERROR_INIT;
        int64_t filled = 0;

        if (dt_fill_run(&filled, store, marks[i].id, damaged, &problem) != DT_OK)
            dt_log_warn("the journals of run '%s' cannot be read: %s", marks[i].id,
                        problem.message);
        r->out->from_journals += filled;
    }
out:
    return st;
}

/* Copies the points that forks have from their parents: they are in no journal of the fork.
 * Existing points are kept. */
static dt_status fill_forks(repair *r, dt_store *store, dt_error *err)
{
    dt_run *runs;
    int64_t count;
    dt_status st;

    DT_TRY(dt_store_run_list(store, &runs, &count, -1, 0, r->arena, err));
    for (int64_t i = count - 1; i >= 0; i--) /* oldest first: forks of forks come later */
        for (int64_t j = 0; j < count; j++)
            if (strcmp(runs[i].parent, runs[j].id) == 0)
                DT_TRY(dt_store_run_copy_past(store, runs[i].id, runs[j].id, runs[i].parent_step,
                                              err));
out:
    return st;
}

/* Removes incomplete runs, to be restored from their folders; a run without a folder keeps its
 * rows. */
static dt_status drop_incomplete(repair *r, dt_store *store, dt_error *err)
{
    const char **ids, *folder;
    int64_t count;
    dt_status st;

    DT_TRY(dt_store_runs_incomplete(store, &ids, &count, r->arena, err));
    for (int64_t i = 0; i < count; i++) {
        DT_TRY(dt_run_path(&folder, ids[i], NULL, r->arena, err));
        DT_TRY(dt_attempt_record_newest(folder) > 0 ? dt_store_run_remove(store, ids[i], err)
                                                    : dt_store_run_complete(store, ids[i], err));
    }
out:
    return st;
}

static void remove_fresh(const repair *r)
{
    for (int i = 0; i < ENDINGS; i++) {
        const char *path = dt_arena_printf(r->arena, "%s%s", r->fresh, endings[i]);

        unlink(path);
    }
}

static dt_status check_sound(dt_store *store, const repair *r, dt_error *err)
{
    const char **problems;
    int64_t count;
    dt_status st;

    DT_TRY(dt_store_verify(store, &problems, &count, r->arena, err));
    if (count > 0)
        DT_THROW(err, DT_ERR_CORRUPT, "the history cannot be repaired: %s", problems[0]);
out:
    return st;
}

/* Takes the rows of an earlier repair that was interrupted at its last step, if other commands
 * have made a new store since. */
static dt_status take_done(repair *r, dt_store *store, dt_error *err)
{
    int64_t more;
    dt_status st = DT_OK;

    if (!dt_file_exists(r->done))
        return DT_OK;
    DT_TRY(dt_store_salvage(&more, store, r->done, false, err));
    DT_TRY(dt_store_pyramid_renew(store, NULL, err));
    r->out->salvaged += more;
out:
    return st;
}

static dt_status make_fresh(repair *r, dt_error *err)
{
    dt_store *store = NULL;
    int64_t more;
    dt_status st;

    remove_fresh(r);
    DT_TRY(dt_store_open(&store, r->fresh, err));
    DT_TRY(dt_store_salvage(&r->out->salvaged, store, r->path, true, err));
    DT_TRY(drop_incomplete(r, store, err));
    dt_restore_runs(store);
    DT_TRY(dt_store_salvage(&more, store, r->path, false, err));
    r->out->salvaged += more;
    DT_TRY(take_done(r, store, err));
    DT_TRY(fill_all(r, store, true, err));
    DT_TRY(fill_forks(r, store, err));
    DT_TRY(dt_store_pyramid_renew(store, NULL, err));
    DT_TRY(check_sound(store, r, err));
out:
    dt_store_close(store);
    return st;
}

static dt_status sync_fresh(const repair *r, dt_error *err)
{
    int fd = open(r->fresh, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    return good ? DT_OK
                : DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", r->fresh, strerror(errno));
}

/* Renames the file and its log, which holds rows too, to an unused name. */
static dt_status move_aside(const char **aside, const repair *r, int number, dt_error *err)
{
    char when[32];
    struct tm parts;
    time_t now = time(NULL);

    strftime(when, sizeof(when), "%Y%m%d-%H%M%S", gmtime_r(&now, &parts));
    *aside = dt_arena_printf(r->arena, "%s.damaged-%s-%d-%d", r->path, when, (int)getpid(), number);
    for (int i = 0; i < ENDINGS; i++) {
        const char *from = dt_arena_printf(r->arena, "%s%s", r->path, endings[i]);
        const char *to = dt_arena_printf(r->arena, "%s%s", *aside, endings[i]);

        if ((i == SHARED_MEMORY ? unlink(from) : rename(from, to)) != 0 && errno != ENOENT)
            return DT_FAIL(err, DT_ERR_IO, "cannot rename '%s': %s", from, strerror(errno));
    }
    return DT_OK;
}

/* Puts the new file in place. Another command may create a store between the two renames: that
 * one is moved aside too. */
static dt_status put_in_place(repair *r, dt_error *err)
{
    dt_status st;

    DT_TRY(dt_file_name(r->fresh, r->done, true, err));
    st = DT_ERR_BUSY;
    for (int i = 0; i < TRIES_MOST && st == DT_ERR_BUSY; i++) {
        dt_error problem = DT_ERROR_INIT;
        const char *aside;

        st = move_aside(&aside, r, i, err);
        if (st != DT_OK)
            return st;
        if (r->out->aside == NULL)
            r->out->aside = aside;
        st = dt_file_name(r->done, r->path, false, &problem);
        if (st != DT_OK && (st != DT_ERR_BUSY || i + 1 == TRIES_MOST))
            return DT_FAIL(err, st, "%s; the damaged history is in '%s'", problem.message,
                           r->out->aside);
    }
out:
    return st;
}

/* *sound: nothing has to be salvaged; `store` is then open. */
static dt_status open_sound(dt_store **store, bool *sound, const repair *r, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = dt_store_open(store, r->path, &problem);

    if (st == DT_OK)
        st = check_sound(*store, r, &problem);
    *sound = st == DT_OK;
    if (st == DT_OK)
        return DT_OK;
    dt_store_close(*store);
    *store = NULL;
    return st == DT_ERR_CORRUPT ? DT_OK : DT_FAIL(err, st, "%s", problem.message);
}

dt_status dt_repair_store(dt_repaired *out, dt_arena *arena, dt_error *err)
{
    repair r = {.out = out, .arena = arena};
    dt_store *store = NULL;
    const char *lock_path;
    bool sound = false;
    dt_status st;
    int lock = -1;

    *out = (dt_repaired){0};
    DT_TRY(dt_dir_make(&r.state, DT_DIR_STATE, arena, err));
    r.path = dt_arena_printf(arena, "%s/store.db", r.state);
    r.fresh = dt_arena_printf(arena, "%s/store.db.repair", r.state);
    r.done = dt_arena_printf(arena, "%s/" DT_REPAIRED_FILE, r.state);
    lock_path = dt_arena_printf(arena, "%s/store.db.repair-lock", r.state);
    DT_TRY(dt_file_lock(&lock, lock_path, err));
    DT_TRY(open_sound(&store, &sound, &r, err));
    if (sound) {
        DT_TRY(take_done(&r, store, err));
        DT_TRY(fill_all(&r, store, false, err));
        DT_TRY(dt_store_sync(store, err));
        (void)unlink(r.done); /* its rows were taken */
        goto out;
    }
    DT_TRY(check_idle(&r, err));
    DT_TRY(make_fresh(&r, err));
    DT_TRY(sync_fresh(&r, err));
    DT_TRY(put_in_place(&r, err));
out:
    dt_store_close(store);
    if (lock >= 0) {
        remove_fresh(&r);
        close(lock);
    }
    return st;
}
