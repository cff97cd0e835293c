#include "runner/supervisor/rebuild/proof.h"

#include <string.h>

#include "base/exit.h"
#include "base/log.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/policy/verdict.h"

typedef struct nodes_of {
    dt_node *items;
    int64_t count;
} nodes_of;

static bool is_released(const dt_node *node)
{
    return strcmp(node->state, "released") == 0;
}

/* True if a node of attempt `from` was released in it or in a later one. all: nodes by attempt, from attempt 1. */
static bool is_node_proved(const nodes_of *all, int64_t attempts, int64_t from, const dt_node *node)
{
    if (is_released(node))
        return true;
    for (int64_t later = from; later < attempts; later++)
        for (int64_t i = 0; i < all[later].count; i++)
            if (strcmp(all[later].items[i].name, node->name) == 0 &&
                is_released(&all[later].items[i]))
                return true;
    return false;
}

/* True if nothing is left on the nodes of the attempt and of those before it: an attempt that leaves out a lost node
 * can end in doubt about it. */
static bool is_proved(const nodes_of *all, int64_t attempts, int64_t attempt)
{
    for (int64_t one = 1; one <= attempt; one++)
        for (int64_t i = 0; i < all[one - 1].count; i++)
            if (!is_node_proved(all, attempts, one, &all[one - 1].items[i]))
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
    nodes_of *all;
    int64_t count;

    DT_TRY(dt_store_attempt_list(store, &attempts, &count, run, arena, err));
    all = dt_arena_alloc_array(arena, (size_t)count + 1, sizeof(*all));
    for (int64_t i = 0; i < count; i++)
        DT_TRY(dt_store_node_list(store, &all[i].items, &all[i].count, run, attempts[i].attempt,
                                  arena, err));
    for (int64_t i = 0; i < count; i++) {
        const dt_attempt *one = &attempts[i];
        const char *doubt = find_doubt(one->reason), *reason;
        int code = one->exit_code;

        if (doubt == NULL || !dt_run_state_is_terminal(one->state) || !is_proved(all, count, i + 1))
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
