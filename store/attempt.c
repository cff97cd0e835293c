/* attempt: the life of a run. Each start or resume is an attempt with its own states; an attempt
 * that has ended is never changed again (invariant 1).
 */
#include "store/store_int.h"

#include "base/banned.h"

dt_status dt_store_run_set_state(dt_store *store, const char *run, dt_run_state state,
                                 int exit_code, const char *reason, int64_t now_ms, dt_error *err)
{
    dt_sql_group group = {0};
    int64_t number, attempt;
    dt_run_state old;
    dt_status st = DT_OK;

    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_run_newest(store, &number, &attempt, &old, run, err));
    if (dt_run_state_is_terminal(old))
        DT_THROW(err, DT_ERR_BUSY, "run '%s' cannot become '%s': its attempt %lld has %s", run,
                 dt_run_state_name(state), (long long)attempt,
                 old == DT_RUN_STOPPED ? "been stopped" : dt_run_state_name(old));
    if (dt_run_state_is_terminal(state))
        DT_TRY(DT_SQL_RUN(store, err,
                          "UPDATE attempts SET state = ?3, ended_ms = ?4, exit_code = ?5,"
                          " reason = coalesce(?6, '') WHERE run = ?1 AND attempt = ?2",
                          DT_INT(number), DT_INT(attempt), DT_TEXT(dt_run_state_name(state)),
                          DT_INT(now_ms), DT_INT(exit_code), DT_TEXT(reason)));
    else
        DT_TRY(DT_SQL_RUN(store, err,
                          "UPDATE attempts SET state = ?3, started_ms = CASE WHEN ?3 = 'queued'"
                          " THEN started_ms ELSE coalesce(started_ms, ?4) END"
                          " WHERE run = ?1 AND attempt = ?2",
                          DT_INT(number), DT_INT(attempt), DT_TEXT(dt_run_state_name(state)),
                          DT_INT(now_ms)));
out:
    return dt_sql_group_end(&group, st, err);
}

dt_status dt_store_attempt_add(dt_store *store, const char *run, int64_t start_step,
                               int64_t steps_total, const char *recipe_json,
                               const char *recipe_hash, int64_t now_ms, int64_t *attempt,
                               dt_error *err)
{
    dt_sql_group group = {0};
    dt_run_state state;
    int64_t number;
    dt_status st = DT_OK;

    *attempt = 0;
    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_run_newest(store, &number, attempt, &state, run, err));
    if (!dt_run_state_is_terminal(state))
        DT_THROW(err, DT_ERR_BUSY, "run '%s' has not ended yet: it is %s", run,
                 dt_run_state_name(state));
    ++*attempt;
    DT_TRY(DT_SQL_RUN(store, err,
                      "INSERT INTO attempts (run, attempt, state, start_step, steps_total,"
                      " created_ms, recipe_json, recipe_hash) VALUES (?1, ?2, 'queued', ?3, ?4,"
                      " ?5, coalesce(?6, ''), coalesce(?7, ''))",
                      DT_INT(number), DT_INT(*attempt), DT_INT(start_step), DT_INT(steps_total),
                      DT_INT(now_ms), DT_TEXT(recipe_json), DT_TEXT(recipe_hash)));
    DT_TRY(DT_SQL_RUN(store, err, "UPDATE runs SET attempt = ?2, step = ?3 WHERE run = ?1",
                      DT_INT(number), DT_INT(*attempt), DT_INT(start_step)));
out:
    return dt_sql_group_end(&group, st, err);
}

static dt_status attempt_read(void *item, dt_sql_rows *rows, dt_error *err)
{
    dt_attempt *attempt = item;

    attempt->attempt = dt_sql_int(rows);
    attempt->start_step = dt_sql_int(rows);
    attempt->created_ms = dt_sql_int(rows);
    attempt->started_ms = dt_sql_int(rows);
    attempt->ended_ms = dt_sql_int(rows);
    attempt->exit_code = (int)dt_sql_int_or(rows, -1);
    attempt->reason = dt_sql_text(rows);
    return dt_sql_state(rows, &attempt->state, err);
}

dt_status dt_store_attempt_list(dt_store *store, dt_attempt **out, int64_t *count, const char *run,
                                dt_arena *arena, dt_error *err)
{
    const dt_sql_selection selection = {
        .sql = "SELECT attempt, start_step, created_ms, started_ms, ended_ms, exit_code,"
               " reason, state FROM attempts WHERE run = ?1 ORDER BY attempt",
        .item_bytes = sizeof(**out),
        .read = attempt_read,
    };
    void *items;
    dt_status st = dt_sql_list_of_run(store, &items, count, run, &selection, arena, err);

    *out = items;
    return st;
}
