#include "runner/supervisor/rebuild/rebuild_int.h"

#include "runner/supervisor/folder/attempt_record.h"

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

dt_status dt_store_lag_find(dt_store_lag *out, dt_store *store, const char *run, const char *folder,
                            dt_arena *arena, dt_error *err)
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
               dt_attempt_record_read(&record, folder, out->newest, arena, NULL) == DT_OK &&
               dt_run_state_is_terminal(record.run.state)) {
        DT_TRY(has_journals(&all, store, &record, arena, err));
        out->what = all ? DT_STORE_LAG_END : DT_STORE_LAG_ROWS;
    }
out:
    return st;
}
