/* rebuild: finds how far the store is behind a run's folder, and restores the rows that it lacks. */
#include "runner/supervisor/rebuild/rebuild.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "engine/checkpoint/checkpoint.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/collect/replay.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "runner/supervisor/folder/run_folder.h"
#include "store/event.h"
#include "store/run.h"
#include "store/store.h"

/* adopt: adds checkpoints and logs of the run's folder that the history does not know. */

/* store_lag: finds how far the run store is behind the run's folder (attempt_record.h).
 *
 *   the folder's newest attempt    the store
 *   is missing in the store        is an older copy, or a new file
 *   has ended                      has everything of it from the journals: the supervisor was killed between
 *                                  the two writes, and only the end is missing
 *   has ended                      has less than that: an older copy
 *
 * The store is synced before the folder's record is written (session.c), so a power loss does not make
 * the store look like an older copy.
 */

typedef enum dt_store_lag_kind {
    DT_STORE_LAG_NONE,
    DT_STORE_LAG_END,  /* only the end of the attempt is missing in the store */
    DT_STORE_LAG_ROWS, /* the store is an older copy, or was lost */
} dt_store_lag_kind;

typedef struct dt_store_lag {
    dt_store_lag_kind what;
    int64_t newest;    /* newest attempt in the folder; 0: none */
    int64_t stored;    /* newest attempt in the store; 0: none */
    bool stored_ended; /* that attempt has ended in the store */
} dt_store_lag;

/* --- how far the store is behind */

static dt_status look_into_store(dt_store_lag *out, dt_store *store, const char *run,
                                 dt_arena *arena, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_attempt *attempts;
    int64_t count = 0;
    dt_status st = dt_store_attempt_list(store, &attempts, &count, run, arena, &problem);

    if (st != DT_OK && st != DT_ERR_NOT_FOUND)
        return DT_FAIL(err, st, "%s", problem.message);
    if (st == DT_OK && count > 0) {
        out->stored = attempts[count - 1].attempt;
        out->stored_ended = dt_run_state_is_terminal(attempts[count - 1].state);
    }
    return DT_OK;
}

/* True if the store's row of the node is as far as the record's. */
static bool has_node(const dt_node *rows, int64_t count, const dt_node *record)
{
    for (int64_t i = 0; i < count; i++)
        if (rows[i].node == record->node)
            return rows[i].acknowledged >= record->acknowledged;
    return false;
}

/* *all: the store has every journal as far as the record says. */
static dt_status has_journals(bool *all, dt_store *store, const dt_attempt_record *record,
                              dt_arena *arena, dt_error *err)
{
    dt_node *rows;
    int64_t count;
    dt_status st =
        dt_store_node_list(store, &rows, &count, record->run.id, record->run.attempt, arena, err);

    *all = st == DT_OK;
    for (int64_t i = 0; *all && i < record->node_count; i++)
        *all = has_node(rows, count, &record->nodes[i]);
    return st;
}

/* folder: runs/ID. */
static dt_status store_lag_find(dt_store_lag *out, dt_store *store, const char *run,
                                const char *folder, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_attempt_record record;
    bool all;

    *out = (dt_store_lag){.newest = dt_attempt_record_newest(folder)};
    if (out->newest == 0)
        return DT_OK;
    DT_TRY(look_into_store(out, store, run, arena, err));
    if (out->stored < out->newest) {
        out->what = DT_STORE_LAG_ROWS;
    } else if (out->stored == out->newest && !out->stored_ended &&
               dt_attempt_record_may_have_ended(folder, out->newest) &&
               dt_attempt_record_read(&record, folder, out->newest, arena, NULL) == DT_OK &&
               dt_run_state_is_terminal(record.run.state)) {
        DT_TRY(has_journals(&all, store, &record, arena, err));
        out->what = all ? DT_STORE_LAG_END : DT_STORE_LAG_ROWS;
    }
out:
    return st;
}

/* --- checkpoints and logs that the history does not know */

#define MARKER_BYTES 4096

static bool is_known(const dt_store_checkpoint *rows, int64_t count, const char *path)
{
    for (int64_t i = 0; i < count; i++)
        if (strcmp(strrchr(rows[i].path, '/') + 1, strrchr(path, '/') + 1) == 0)
            return true;
    return false;
}

static int64_t count_bytes(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    int64_t bytes = 0;
    struct stat info;

    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(info.st_mode))
            bytes += info.st_size;
    if (dir != NULL)
        closedir(dir);
    return bytes;
}

/* Adds a checkpoint; the marker file holds its digest and time. */
static dt_status add(dt_store *store, const char *run, const dt_checkpoint_entry *entry,
                     dt_error *err)
{
    dt_store_checkpoint row = {.attempt = entry->attempt,
                               .step = entry->name.step,
                               .path = entry->path,
                               .valid_loss = entry->valid_loss,
                               .score = entry->score};
    dt_strbuf path, marker;
    struct stat info;
    dt_status st;

    dt_strbuf_init(&path);
    dt_strbuf_init(&marker);
    dt_strbuf_add_fmt(&path, "%s/" DT_CHECKPOINT_MARKER, entry->path);
    DT_TRY(dt_file_read(&marker, path.data, MARKER_BYTES, err));
    marker.data[strcspn(marker.data, "\n")] = '\0';
    row.digest = marker.data;
    row.bytes = count_bytes(entry->path);
    if (stat(path.data, &info) == 0)
        row.time_ms = (int64_t)info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000;
    DT_TRY(dt_store_checkpoint_add(store, run, &row, err));
out:
    dt_strbuf_release(&marker);
    dt_strbuf_release(&path);
    return st;
}

/* Sets the stored lengths of the rank logs to their file sizes, so that they are not truncated.
 * Lines that a journal still holds are added a second time. */
static dt_status adopt_logs(dt_store *store, const char *run, const char *folder, int64_t attempt,
                            dt_arena *arena, dt_error *err)
{
    dt_rank *rows;
    int64_t count;
    dt_status st = DT_OK;
    struct dirent *entry;
    struct stat info;
    dt_strbuf path;
    long long rank;
    DIR *dir = NULL;

    dt_strbuf_init(&path);
    DT_TRY(dt_store_rank_list(store, &rows, &count, run, attempt, arena, err));
    dt_strbuf_add_fmt(&path, "%s/logs", folder);
    dir = opendir(path.data);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        dt_rank row = {.device = "", .state = "waiting", .exit_code = -1, .exit_signal = -1};

        if (sscanf(entry->d_name, "rank-%lld.log", &rank) != 1 || rank < 0 ||
            fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        for (int64_t i = 0; i < count; i++)
            if (rows[i].rank == rank)
                row = rows[i];
        row.rank = rank;
        row.log_bytes = info.st_size;
        DT_TRY(dt_store_rank_set(store, run, attempt, &row, err));
    }
out:
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&path);
    return st;
}

/* Adds a row for each checkpoint in FOLDER/checkpoints that has none (compared by directory
 * name). For a lost history only: otherwise the run resumes only from reported checkpoints
 * (resume_point.h). */
static dt_status adopt_checkpoints(dt_store *store, const char *run, const char *folder,
                                   dt_arena *arena, dt_error *err)
{
    const char *parent = dt_arena_printf(arena, "%s/checkpoints", folder);
    dt_checkpoint_entry *entries;
    dt_store_checkpoint *rows;
    int64_t count, known;
    dt_status st;

    DT_TRY(dt_store_checkpoint_list(store, &rows, &known, run, arena, err));
    DT_TRY(dt_checkpoint_list(&entries, &count, parent, arena, err));
    for (int64_t i = 0; i < count; i++)
        if (entries[i].whole && entries[i].opens && !is_known(rows, known, entries[i].path))
            DT_TRY(add(store, run, &entries[i], err));
out:
    return st;
}

/* --- rows */

#define RECIPE_BYTES ((size_t)16 << 20)

typedef struct rebuilding {
    dt_store *store;
    const char *run, *folder;
    dt_store_lag lag;
    dt_attempt_record last; /* record of the newest attempt read so far */
    bool whole; /* the journals hold everything that the history had of the ended attempts */
    dt_arena arena;
} rebuilding;

/* --- the attempts */

/* Sets `last` to the attempt's record; without a record, unknown values are taken from the
 * attempt before. */
static dt_status recall(rebuilding *rebuild, int64_t attempt, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st;
    dt_attempt_record record;

    st = dt_attempt_record_read(&record, rebuild->folder, attempt, &rebuild->arena, &problem);
    if (st == DT_OK) {
        rebuild->last = record;
    } else if (st == DT_ERR_UNSUPPORTED) {
        return DT_FAIL(err, st, "cannot restore run '%s': %s", rebuild->run, problem.message);
    } else {
        rebuild->last.run.state = DT_RUN_QUEUED;
        rebuild->last.run.started_ms = rebuild->last.run.first_step_ms = 0;
        rebuild->last.stop_asked = false;
        rebuild->last.node_count = 0;
    }
    rebuild->last.run.attempt = attempt;
    return DT_OK;
}

/* Finds the first record that can be read; it also stands for earlier attempts. */
static dt_status find_first(rebuilding *rebuild, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_ERR_NOT_FOUND;

    for (int64_t attempt = 1;
         attempt <= rebuild->lag.newest && st != DT_OK && st != DT_ERR_UNSUPPORTED; attempt++) {
        dt_error_clear(&problem);
        st = dt_attempt_record_read(&rebuild->last, rebuild->folder, attempt, &rebuild->arena,
                                    &problem);
    }
    return st == DT_OK
               ? DT_OK
               : DT_FAIL(err, st, "cannot restore run '%s': %s", rebuild->run, problem.message);
}

/* Copies the points that a fork has from its parent: they are in no journal of the fork. */
static dt_status copy_past(rebuilding *rebuild, const dt_run *row, dt_error *err)
{
    dt_run parent;
    dt_status st = DT_OK;

    if (row->parent == NULL || row->parent[0] == '\0')
        return DT_OK;
    st = dt_store_run_find(rebuild->store, &parent, row->parent, &rebuild->arena, NULL);
    if (st != DT_OK || strcmp(parent.id, row->parent) != 0) {
        rebuild->whole = false;
        return DT_OK;
    }
    return dt_store_run_copy_past(rebuild->store, rebuild->run, parent.id, row->parent_step, err);
}

static dt_status add_run(rebuilding *rebuild, dt_error *err)
{
    dt_strbuf recipe, path;
    dt_status st;
    dt_run row;

    dt_strbuf_init(&recipe);
    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/recipe.yaml", rebuild->folder);
    if (dt_file_read(&recipe, path.data, RECIPE_BYTES, NULL) != DT_OK)
        dt_strbuf_reset(&recipe); /* not needed to continue */
    row = rebuild->last.run;
    row.id = rebuild->run;
    row.recipe_text = recipe.data;
    dt_labels_read(&row, rebuild->folder, &rebuild->arena);
    DT_TRY(dt_store_run_add(rebuild->store, &row, err));
    DT_TRY(dt_labels_restore_notes(rebuild->store, rebuild->run, rebuild->folder, &rebuild->arena,
                                   err));
    DT_TRY(copy_past(rebuild, &row, err));
out:
    dt_strbuf_release(&recipe);
    dt_strbuf_release(&path);
    return st;
}

static dt_status add_attempt(rebuilding *rebuild, dt_error *err)
{
    const dt_run *run = &rebuild->last.run;
    int64_t added = 1;
    dt_status st = DT_OK;

    if (run->attempt > 1)
        DT_TRY(dt_store_attempt_add(rebuild->store, rebuild->run, rebuild->last.start_step,
                                    run->steps_total, run->recipe_json, run->recipe_hash,
                                    rebuild->last.created_ms, &added, err));
    else
        DT_TRY(add_run(rebuild, err));
    DT_ASSERT(added == run->attempt);
    DT_TRY(dt_store_attempt_set_changes(rebuild->store, rebuild->run, rebuild->last.changes_json,
                                        err));
    DT_TRY(dt_store_attempt_set_provenance(rebuild->store, rebuild->run,
                                           rebuild->last.provenance_json, err));
out:
    return st;
}

/* True if something was started on the nodes: ranks may still be running there. */
static bool has_places(const rebuilding *rebuild)
{
    bool found = false;
    struct dirent *entry;
    dt_strbuf path;
    DIR *dir;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/attempt-%lld", rebuild->folder, (long long)rebuild->lag.newest);
    dir = opendir(path.data);
    while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, "node-", strlen("node-")) != 0)
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/attempt-%lld/%s/" DT_NODE_LAYOUT_FILE, rebuild->folder,
                          (long long)rebuild->lag.newest, entry->d_name);
        found = dt_file_exists(path.data);
    }
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&path);
    return found;
}

/* Adds the nodes of an ended attempt as lost, so that nodes where something may be left are
 * asked again. */
static dt_status add_nodes(rebuilding *rebuild, bool known, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < rebuild->last.node_count && st == DT_OK; i++) {
        dt_node row = rebuild->last.nodes[i];

        if (!known && strcmp(row.state, "released") != 0)
            row.state = "lost";
        row.acknowledged = 0; /* no event of its journal is stored */
        st = dt_store_node_set(rebuild->store, rebuild->run, rebuild->last.run.attempt, &row, err);
    }
    return st;
}

/* Returns the state in which the newest attempt, which has not ended, resumes. In `starting`
 * running ranks are followed and missing ones started; in `running` a node is not given up just
 * because it cannot be reached now. */
static dt_run_state state_to_resume_in(const rebuilding *rebuild)
{
    if (rebuild->last.run.state == DT_RUN_WAITING)
        return DT_RUN_WAITING;
    if (!has_places(rebuild))
        return DT_RUN_QUEUED;
    return rebuild->last.run.state == DT_RUN_RUNNING ? DT_RUN_RUNNING : DT_RUN_STARTING;
}

static dt_status set_state(rebuilding *rebuild, dt_error *err)
{
    dt_run *run = &rebuild->last.run;
    bool ended = dt_run_state_is_terminal(run->state), newest = run->attempt == rebuild->lag.newest;
    int64_t started_ms = run->started_ms != 0 ? run->started_ms : rebuild->last.created_ms;
    dt_run_state before = newest && !ended                ? state_to_resume_in(rebuild)
                          : ended && run->started_ms == 0 ? DT_RUN_QUEUED
                                                          : DT_RUN_STARTING;
    dt_status st;

    DT_TRY(dt_store_run_set_state(rebuild->store, rebuild->run, before, -1, "", started_ms, err));
    if ((ended || !newest) && run->attempt > rebuild->lag.stored)
        DT_TRY(add_nodes(rebuild, ended, err));
    if (run->first_step_ms != 0)
        DT_TRY(dt_store_run_set_progress(rebuild->store, rebuild->run, run->step, run->loss,
                                         run->valid_loss, run->tokens_per_second,
                                         run->first_step_ms, err));
    if (ended)
        DT_TRY(dt_store_run_set_state(rebuild->store, rebuild->run, run->state, run->exit_code,
                                      run->reason, run->ended_ms, err));
    else if (!newest)
        DT_TRY(dt_store_run_set_state(rebuild->store, rebuild->run, DT_RUN_FAILED, DT_EXIT_FAILED,
                                      "its end is missing from the history", started_ms, err));
out:
    return st;
}

/* Replays the journals of an ended attempt; of a running one the agents send their events. */
static dt_status replay(rebuilding *rebuild, int64_t attempt, dt_error *err)
{
    const dt_replay request = {.store = rebuild->store,
                               .run = rebuild->run,
                               .folder = rebuild->folder,
                               .attempt = attempt,
                               .nodes = rebuild->last.nodes,
                               .node_count = rebuild->last.node_count};
    bool whole = false;
    dt_status st = DT_OK;

    if (attempt < rebuild->lag.newest || dt_run_state_is_terminal(rebuild->last.run.state))
        DT_TRY(dt_replay_write(&whole, &request, err));
    rebuild->whole = rebuild->whole && whole;
out:
    return st;
}

static dt_status write_attempts(rebuilding *rebuild, dt_error *err)
{
    dt_status st;

    DT_TRY(find_first(rebuild, err));
    for (int64_t attempt = rebuild->lag.stored > 0 ? rebuild->lag.stored : 1;
         attempt <= rebuild->lag.newest; attempt++) {
        if (attempt == rebuild->lag.stored && rebuild->lag.stored_ended)
            continue;
        DT_TRY(recall(rebuild, attempt, err));
        if (attempt > rebuild->lag.stored)
            DT_TRY(add_attempt(rebuild, err));
        DT_TRY(set_state(rebuild, err));
        DT_TRY(replay(rebuild, attempt, err));
    }
out:
    return st;
}

/* --- the event that reports it */

static dt_status add_event(rebuilding *rebuild, json_t *json, dt_error *err)
{
    dt_store_event event = {.attempt = rebuild->lag.newest,
                            .node = -1,
                            .sequence = -1,
                            .rank = -1,
                            .time_ms = dt_clock_wall_ms(),
                            .kind = json_string_value(json_object_get(json, "event"))};
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    dt_json_write(&text, json);
    event.json = text.data;
    st = dt_store_event_add(rebuild->store, rebuild->run, &event, err);
    dt_strbuf_release(&text);
    json_decref(json);
    return st;
}

static dt_status record_restoration(rebuilding *rebuild, dt_error *err)
{
    char before[200], text[400];
    dt_status st;

    if (rebuild->lag.stored == 0)
        snprintf(before, sizeof(before), "the run store had lost run '%.100s'", rebuild->run);
    else
        snprintf(before, sizeof(before), "the run store knew run '%.100s' only up to attempt %lld",
                 rebuild->run, (long long)rebuild->lag.stored);
    snprintf(text, sizeof(text), "%s: restored from its folder and its journals%s", before,
             rebuild->whole ? "" : ", without the events that these no longer hold");
    dt_log_warn("%s", text);
    DT_TRY(add_event(rebuild,
                     json_pack("{s:s, s:s, s:o}", "event", rebuild->whole ? "restored" : "gap",
                               "file", "store.db", "message", dt_json_text(text)),
                     err));
    if (rebuild->last.stop_asked && !dt_run_state_is_terminal(rebuild->last.run.state))
        DT_TRY(add_event(rebuild, json_pack("{s:s, s:b}", "event", "stop", "now", 0), err));
out:
    return st;
}

/* Writes the end of the attempt that the store knows without its end. */
static dt_status write_end(rebuilding *rebuild, dt_error *err)
{
    const dt_run *run = &rebuild->last.run;
    dt_status st;

    DT_TRY(dt_attempt_record_read(&rebuild->last, rebuild->folder, rebuild->lag.newest,
                                  &rebuild->arena, err));
    DT_TRY(dt_store_run_set_state(rebuild->store, rebuild->run, run->state, run->exit_code,
                                  run->reason, run->ended_ms, err));
    dt_log_info("the end of attempt %lld of run '%s' was recorded only in its folder",
                (long long)rebuild->lag.newest, rebuild->run);
out:
    return st;
}

static dt_status write_lost(rebuilding *rebuild, dt_error *err)
{
    dt_status st;

    DT_TRY(write_attempts(rebuild, err));
    DT_TRY(adopt_checkpoints(rebuild->store, rebuild->run, rebuild->folder, &rebuild->arena, err));
    if (rebuild->lag.newest > rebuild->lag.stored)
        DT_TRY(adopt_logs(rebuild->store, rebuild->run, rebuild->folder, rebuild->lag.newest,
                          &rebuild->arena, err));
    DT_TRY(record_restoration(rebuild, err));
out:
    return st;
}

static dt_status write_rows(rebuilding *rebuild, dt_error *err)
{
    bool restored;
    dt_status st;

    DT_TRY(rebuild->lag.what == DT_STORE_LAG_END ? write_end(rebuild, err)
                                                 : write_lost(rebuild, err));
    if (rebuild->last.run.exit_code != DT_EXIT_LEFT)
        DT_TRY(dt_store_run_restore(rebuild->store, &restored, rebuild->run, err));
out:
    return st;
}

/* The caller releases the arena. */
static dt_status look(rebuilding *rebuild, dt_store *store, const char *run, dt_error *err)
{
    dt_status st;

    *rebuild = (rebuilding){.store = store, .run = run, .whole = true};
    dt_arena_init(&rebuild->arena, 0);
    DT_TRY(dt_run_path(&rebuild->folder, run, NULL, &rebuild->arena, err));
    DT_TRY(store_lag_find(&rebuild->lag, store, run, rebuild->folder, &rebuild->arena, err));
out:
    return st;
}

dt_status dt_rebuild_is_needed(bool *needed, dt_store *store, const char *run, dt_error *err)
{
    rebuilding rebuild;
    dt_status st = look(&rebuild, store, run, err);

    *needed = st == DT_OK && rebuild.lag.what != DT_STORE_LAG_NONE;
    dt_arena_release(&rebuild.arena);
    return st;
}

dt_status dt_rebuild_run(bool *rebuilt, dt_store *store, const char *run, dt_error *err)
{
    bool begun = false;
    rebuilding rebuild;
    dt_status st;

    *rebuilt = false;
    DT_TRY(look(&rebuild, store, run, err));
    if (rebuild.lag.what == DT_STORE_LAG_NONE)
        goto out;
    DT_TRY(dt_store_begin(store, err));
    begun = true;
    DT_TRY(write_rows(&rebuild, err));
    DT_TRY(dt_store_commit(store, err));
    *rebuilt = true;
out:
    if (begun && st != DT_OK)
        dt_store_rollback(store);
    dt_arena_release(&rebuild.arena);
    return st;
}
