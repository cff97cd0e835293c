/* restore_runs: restores runs that the store lacks or knows an older state of; amends the end of a run once
 * it is verified that nothing of it is left. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/policy/verdict.h"
#include "runner/supervisor/rebuild/rebuild.h"

/* --- proof that nothing is left */

typedef struct nodes_of {
    dt_node *items;
    int64_t count;
} nodes_of;

static bool is_released(const dt_node *node)
{
    return strcmp(node->state, "released") == 0;
}

/* True if a node of attempt `from` was released in it or in a later one. all: nodes by attempt, from attempt 1. */
static bool is_node_proved(const nodes_of *attempts_nodes, int64_t attempts, int64_t from,
                           const dt_node *node)
{
    if (is_released(node))
        return true;
    for (int64_t later = from; later < attempts; later++)
        for (int64_t i = 0; i < attempts_nodes[later].count; i++)
            if (strcmp(attempts_nodes[later].items[i].name, node->name) == 0 &&
                is_released(&attempts_nodes[later].items[i]))
                return true;
    return false;
}

/* True if nothing is left on the nodes of the attempt and of those before it: an attempt that leaves out a lost node
 * can end in doubt about it. */
static bool is_proved(const nodes_of *attempts_nodes, int64_t attempts, int64_t attempt)
{
    for (int64_t one = 1; one <= attempt; one++)
        for (int64_t i = 0; i < attempts_nodes[one - 1].count; i++)
            if (!is_node_proved(attempts_nodes, attempts, one, &attempts_nodes[one - 1].items[i]))
                return false;
    return true;
}

/* Returns the part of the reason that says what is left or unverified; NULL if there is none. */
static const char *find_doubt(const char *reason)
{
    const char *left = strstr(reason, DT_REASON_LEFT), *unknown = strstr(reason, DT_REASON_UNKNOWN);

    return left != NULL && (unknown == NULL || left < unknown) ? left : unknown;
}

/* Writes the new exit code and reason to the run's folder too, from which a lost history is
 * rebuilt. */
static void amend_record(const char *run, int64_t attempt, int code, const char *reason,
                         dt_arena *arena)
{
    const char *folder;
    dt_error problem = DT_ERROR_INIT;
    dt_attempt_record record;

    if (dt_run_path(&folder, run, NULL, arena, NULL) != DT_OK ||
        dt_attempt_record_read(&record, folder, attempt, arena, NULL) != DT_OK)
        return;
    record.run.exit_code = code;
    record.run.reason = reason;
    if (dt_attempt_record_write(&record, folder, &problem) != DT_OK)
        dt_log_warn("%s", problem.message);
}

dt_status dt_run_amend_end(dt_store *store, const char *run, dt_arena *arena, dt_error *err)
{
    dt_attempt *attempts;
    dt_status st = DT_OK;
    nodes_of *attempts_nodes;
    int64_t count;

    DT_TRY(dt_store_attempt_list(store, &attempts, &count, run, arena, err));
    attempts_nodes = dt_arena_alloc_array(arena, (size_t)count + 1, sizeof(*attempts_nodes));
    for (int64_t i = 0; i < count; i++)
        DT_TRY(dt_store_node_list(store, &attempts_nodes[i].items, &attempts_nodes[i].count, run,
                                  attempts[i].attempt, arena, err));
    for (int64_t i = 0; i < count; i++) {
        const dt_attempt *one = &attempts[i];
        const char *doubt = find_doubt(one->reason), *reason;
        int code = one->exit_code;

        if (doubt == NULL || !dt_run_state_is_terminal(one->state) ||
            !is_proved(attempts_nodes, count, i + 1))
            continue;
        if (code == DT_EXIT_LEFT)
            code = one->state == DT_RUN_STOPPED    ? DT_EXIT_STOPPED
                   : one->state == DT_RUN_FINISHED ? DT_EXIT_GOOD
                                                   : DT_EXIT_FAILED;
        reason = dt_arena_printf(arena, "%.*s" DT_REASON_PROVED, (int)(doubt - one->reason),
                                 one->reason);
        DT_TRY(dt_store_attempt_amend(store, run, one->attempt, code, reason, err));
        amend_record(run, one->attempt, code, reason, arena);
    }
out:
    return st;
}

/* --- runs */

#define WAIT_SECONDS 60.0
#define FORKS_MOST   64 /* depth of forks of forks; more means damage */

/* Waits until no other command restores rows; the caller closes *fd. */
static dt_status wait_for_others(int *fd, dt_arena *arena, dt_error *err)
{
    double give_up = dt_clock_monotonic_seconds() + WAIT_SECONDS;
    const char *state, *path;
    dt_status st;

    DT_TRY(dt_dir_path(&state, DT_DIR_STATE, arena, err));
    path = dt_arena_printf(arena, "%s/rebuild.lock", state);
    while (dt_file_lock(fd, path, NULL) == DT_ERR_BUSY && dt_clock_monotonic_seconds() < give_up)
        dt_clock_sleep_seconds(0.02);
out:
    return st;
}

static dt_status restore_run(bool *rebuilt, dt_store *store, const char *run, dt_arena *arena,
                             dt_error *err)
{
    const char *folder, *path;
    dt_status st = DT_OK;
    int lock = -1, turn = -1;
    bool needed;

    *rebuilt = false;
    DT_TRY(dt_rebuild_is_needed(&needed, store, run, err));
    if (!needed)
        goto out;
    DT_TRY(wait_for_others(&turn, arena, err));
    DT_TRY(dt_run_path(&folder, run, NULL, arena, err));
    DT_TRY(dt_run_check_owner(run, folder, err));
    DT_TRY(dt_run_path(&path, run, "supervisor.lock", arena, err));
    if (dt_file_lock(&lock, path, NULL) == DT_OK)
        DT_TRY(dt_rebuild_run(rebuilt, store, run, err));
out:
    if (lock >= 0)
        close(lock);
    if (turn >= 0)
        close(turn);
    return st;
}

static bool is_stored(dt_store *store, const char *run, dt_arena *arena)
{
    dt_run row;

    return dt_store_run_find(store, &row, run, arena, NULL) == DT_OK && strcmp(row.id, run) == 0;
}

static bool restore_with_parents(dt_store *store, const char *run, int deep);

static void restore_parents(dt_store *store, const char *run, int deep, dt_arena *arena)
{
    dt_run labels = {.parent = ""};
    const char *folder;

    if (deep >= FORKS_MOST || dt_run_path(&folder, run, NULL, arena, NULL) != DT_OK)
        return;
    dt_labels_read(&labels, folder, arena);
    if (labels.parent[0] != '\0' && !is_stored(store, labels.parent, arena))
        (void)restore_with_parents(store, labels.parent, deep + 1);
}

static bool restore_with_parents(dt_store *store, const char *run, int deep)
{
    dt_error problem = DT_ERROR_INIT;
    bool rebuilt = false;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (!is_stored(store, run, &arena))
        restore_parents(store, run, deep, &arena);
    if (restore_run(&rebuilt, store, run, &arena, &problem) != DT_OK)
        dt_log_warn("%s", problem.message);
    dt_arena_release(&arena);
    return rebuilt;
}

bool dt_restore_run(dt_store *store, const char *run)
{
    return dt_store_can_write(store) && restore_with_parents(store, run, 0);
}

void dt_restore_parents(dt_store *store, const char *run)
{
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_store_can_write(store) && !is_stored(store, run, &arena))
        restore_parents(store, run, 0, &arena);
    dt_arena_release(&arena);
}

static int by_id(const void *key, const void *mark)
{
    return strcmp(key, ((const dt_run_mark *)mark)->id);
}

/* True if the store has everything of the run: its newest attempt has ended there, and the
 * folder has no later one. mark: what the store has, or NULL. Does not open any file. */
static bool is_settled(const dt_run_mark *mark, DIR *runs, const char *run)
{
    char next[300];

    if (mark == NULL || !mark->ended)
        return false;
    snprintf(next, sizeof(next), "%s/attempt-%lld", run, (long long)mark->attempt + 1);
    return faccessat(dirfd(runs), next, F_OK, 0) != 0;
}

typedef struct lost {
    const char *run;
    int64_t created_ms; /* 0: unknown, or the store has a number for the run already */
} lost;

static int by_creation(const void *a, const void *b)
{
    const lost *left = a, *right = b;

    if (left->created_ms != right->created_ms)
        return left->created_ms < right->created_ms ? -1 : 1;
    return strcmp(left->run, right->run);
}

static int64_t find_creation(const char *runs, const char *run, dt_arena *arena)
{
    const char *folder = dt_arena_printf(arena, "%s/%s", runs, run);
    int64_t newest = dt_attempt_record_newest(folder);
    dt_attempt_record record;

    return newest > 0 && dt_attempt_record_read(&record, folder, newest, arena, NULL) == DT_OK
               ? record.run.created_ms
               : 0;
}

/* Finds runs that have a folder and are not settled, in the order of their creation, because the
 * store numbers runs in that order: then 'last' is still the same run. */
static int64_t find_unsettled(lost **out, dt_store *store, const char *runs, dt_arena *arena)
{
    DIR *dir = opendir(runs);
    int64_t count, found = 0, capacity = 0;
    struct dirent *entry;
    const dt_run_mark *mark;
    dt_run_mark *marks;

    *out = NULL;
    if (dt_store_run_marks(store, &marks, &count, arena, NULL) != DT_OK)
        count = 0;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        mark = bsearch(entry->d_name, marks, (size_t)count, sizeof(marks[0]), by_id);
        if (entry->d_name[0] == '.' || is_settled(mark, dir, entry->d_name))
            continue;
        *out = dt_array_room(*out, found + 1, &capacity, sizeof(**out));
        (*out)[found++] = (lost){dt_arena_strdup(arena, entry->d_name),
                                 mark == NULL ? find_creation(runs, entry->d_name, arena) : 0};
    }
    if (dir != NULL)
        closedir(dir);
    if (found > 1)
        qsort(*out, (size_t)found, sizeof(**out), by_creation);
    return found;
}

void dt_restore_runs(dt_store *store)
{
    const char *state, *runs;
    int64_t count = 0;
    lost *unsettled = NULL;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_dir_path(&state, DT_DIR_STATE, &arena, NULL) == DT_OK &&
        (runs = dt_arena_printf(&arena, "%s/runs", state)) != NULL)
        count = find_unsettled(&unsettled, store, runs, &arena);
    for (int64_t i = 0; i < count; i++)
        (void)dt_restore_run(store, unsettled[i].run);
    free(unsettled);
    dt_arena_release(&arena);
}
