/* attempt: changes the state of a run by its attempts, and keeps a second copy of the files of an attempt. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/process.h"
#include "store/store_int.h"

#define NOW_SLACK_MS 10000

/* Returns true if the time is the present. Other times (in tests) have no counterpart on the boot clock. */
static bool is_now(int64_t now_ms)
{
    return llabs(now_ms - dt_clock_wall_ms()) < NOW_SLACK_MS;
}

/* Records the boot clock at the start and at the end of an attempt, for attempts.elapsed_ms. */
static dt_status keep_boot_clock(dt_store *store, int64_t number, int64_t attempt, bool ended,
                                 int64_t now_ms, dt_error *err)
{
    char boot[DT_BOOT_ID_SIZE];

    if (dt_boot_id(boot)[0] == '\0')
        return DT_OK;
    if (ended)
        return DT_SQL_RUN(store, err,
                          "UPDATE attempts SET elapsed_ms = max(0, ?3 - started_boot_ms)"
                          " WHERE run = ?1 AND attempt = ?2 AND boot_id = ?4"
                          " AND started_boot_ms IS NOT NULL",
                          DT_INT(number), DT_INT(attempt), DT_INT(dt_boot_ms()), DT_TEXT(boot));
    return DT_SQL_RUN(store, err,
                      "UPDATE attempts SET started_boot_ms = ?3, boot_id = ?4 WHERE run = ?1"
                      " AND attempt = ?2 AND started_boot_ms IS NULL AND started_ms = ?5",
                      DT_INT(number), DT_INT(attempt), DT_INT(dt_boot_ms()), DT_TEXT(boot),
                      DT_INT(now_ms));
}

dt_status dt_store_run_set_state(dt_store *store, const char *run, dt_run_state state,
                                 int exit_code, const char *reason, int64_t now_ms, dt_error *err)
{
    dt_sql_group group = {0};
    int64_t number, attempt;
    bool waits = state == DT_RUN_WAITING;
    dt_run_state old;
    dt_status st = DT_OK;

    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_run_newest(store, &number, &attempt, &old, run, err));
    if (dt_run_state_is_terminal(old))
        DT_THROW(err, DT_ERR_BUSY, "cannot set run '%s' to '%s': its attempt %lld has already %s",
                 run, dt_run_state_name(state), (long long)attempt,
                 old == DT_RUN_STOPPED ? "been stopped" : dt_run_state_name(old));
    if (dt_run_state_is_terminal(state))
        DT_TRY(DT_SQL_RUN(store, err,
                          "UPDATE attempts SET state = ?3, ended_ms = ?4, exit_code = ?5,"
                          " reason = coalesce(?6, '') WHERE run = ?1 AND attempt = ?2",
                          DT_INT(number), DT_INT(attempt), DT_TEXT(dt_run_state_name(state)),
                          DT_INT(now_ms), DT_INT(exit_code), DT_TEXT(reason)));
    else
        DT_TRY(DT_SQL_RUN(store, err,
                          "UPDATE attempts SET state = ?3, reason = ?5, started_ms = CASE WHEN"
                          " ?3 = 'queued' THEN started_ms ELSE coalesce(started_ms, ?4) END"
                          " WHERE run = ?1 AND attempt = ?2",
                          DT_INT(number), DT_INT(attempt),
                          DT_TEXT(dt_run_state_name(waits ? DT_RUN_QUEUED : state)), DT_INT(now_ms),
                          DT_TEXT(waits ? DT_SQL_WAITING : "")));
    if (is_now(now_ms))
        DT_TRY(
            keep_boot_clock(store, number, attempt, dt_run_state_is_terminal(state), now_ms, err));
out:
    return dt_sql_group_end(&group, st, err);
}

dt_status dt_store_run_claim(dt_store *store, const char *run, int64_t attempt, dt_error *err)
{
    dt_sql_group group = {0};
    int64_t number, newest;
    dt_run_state state;
    dt_status st = DT_OK;

    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_run_newest(store, &number, &newest, &state, run, err));
    if (state != DT_RUN_WAITING || newest != attempt)
        DT_THROW(err, DT_ERR_BUSY, "run '%s' does not wait: it is %s", run,
                 dt_run_state_name(state));
    DT_TRY(dt_store_run_set_state(store, run, DT_RUN_QUEUED, -1, "", 0, err));
out:
    return dt_sql_group_end(&group, st, err);
}

dt_status dt_store_attempt_amend(dt_store *store, const char *run, int64_t attempt, int exit_code,
                                 const char *reason, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t number;

    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_RUN(store, err,
                      "UPDATE attempts SET exit_code = ?3, reason = ?4 WHERE run = ?1"
                      " AND attempt = ?2 AND ended_ms IS NOT NULL",
                      DT_INT(number), DT_INT(attempt), DT_INT(exit_code), DT_TEXT(reason)));
out:
    return st;
}

/* Runs `sql`, which sets ?3 in the newest attempt ?2 of the run ?1. */
static dt_status set_text(dt_store *store, const char *run, const char *sql, const char *text,
                          dt_error *err)
{
    dt_sql_group group = {0};
    int64_t number, attempt;
    dt_run_state state;
    dt_status st = DT_OK;

    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_run_newest(store, &number, &attempt, &state, run, err));
    DT_TRY(DT_SQL_RUN(store, err, sql, DT_INT(number), DT_INT(attempt), DT_TEXT(text)));
out:
    return dt_sql_group_end(&group, st, err);
}

dt_status dt_store_attempt_set_changes(dt_store *store, const char *run, const char *changes_json,
                                       dt_error *err)
{
    return set_text(store, run, "UPDATE attempts SET changes = ?3 WHERE run = ?1 AND attempt = ?2",
                    changes_json, err);
}

dt_status dt_store_attempt_set_provenance(dt_store *store, const char *run,
                                          const char *provenance_json, dt_error *err)
{
    return set_text(store, run,
                    "UPDATE attempts SET provenance = ?3 WHERE run = ?1 AND attempt = ?2",
                    provenance_json, err);
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
    bool found;

    *attempt = 0;
    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_run_newest(store, &number, attempt, &state, run, err));
    if (!dt_run_state_is_terminal(state))
        DT_THROW(err, DT_ERR_BUSY, "run '%s' has not ended yet: it is %s", run,
                 dt_run_state_name(state));
    /* runs.attempt can be an earlier one (dt_store_run_restore) */
    DT_TRY(DT_SQL_FIRST(attempt, &found, &dt_sql_one_int, store, NULL, err,
                        "SELECT max(attempt) FROM attempts WHERE run = ?1", DT_INT(number)));
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

#define ATTEMPT(X)                                                                                 \
    X(dt_attempt, attempt, "attempt")                                                              \
    X(dt_attempt, start_step, "start_step")                                                        \
    X(dt_attempt, created_ms, "created_ms")                                                        \
    X(dt_attempt, started_ms, "started_ms")                                                        \
    X(dt_attempt, ended_ms, "ended_ms")                                                            \
    X(dt_attempt, elapsed_ms, "coalesce(max(0, coalesce(elapsed_ms, ended_ms - started_ms)), -1)") \
    X(dt_attempt, state, DT_SQL_SHOWN_STATE)                                                       \
    X(dt_attempt, exit_code, "exit_code")                                                          \
    X(dt_attempt, reason, DT_SQL_SHOWN_REASON)                                                     \
    X(dt_attempt, changes_json, "changes")                                                         \
    X(dt_attempt, provenance_json, "provenance")

static const dt_sql_row attempt_row = DT_SQL_ROW(dt_attempt, ATTEMPT);

dt_status dt_store_attempt_list(dt_store *store, dt_attempt **out, int64_t *count, const char *run,
                                dt_arena *arena, dt_error *err)
{
    return DT_SQL_LIST_OF_RUN(
        out, count, &attempt_row, store, run, arena, err,
        DT_SQL_SELECT(ATTEMPT, "FROM attempts a WHERE run = ?1 ORDER BY attempt"));
}

#define STANDING(X)                              \
    X(dt_standing, attempt, "a.attempt")         \
    X(dt_standing, state, DT_SQL_SHOWN_STATE)    \
    X(dt_standing, recipe_json, "a.recipe_json") \
    X(dt_standing, recipe_hash, "a.recipe_hash")

static const dt_sql_row standing_row = DT_SQL_ROW(dt_standing, STANDING);

dt_status dt_store_run_standing(dt_store *store, dt_standing *out, const char *run, dt_arena *arena,
                                dt_error *err)
{
    dt_status st = DT_OK;
    bool found;

    *out = (dt_standing){0};
    DT_TRY(DT_SQL_FIRST(out, &found, &standing_row, store, arena, err,
                        DT_SQL_SELECT(STANDING,
                                      "FROM attempts a JOIN runs r USING (run) WHERE r.id = ?1"
                                      " AND (a.first_step_ms IS NOT NULL OR a.state <> 'failed' "
                                      "OR a.attempt = 1)"
                                      " ORDER BY a.attempt DESC LIMIT 1"),
                        DT_TEXT(run)));
    if (!found)
        DT_THROW(err, DT_ERR_NOT_FOUND, "no run has the id '%s'", run);
out:
    return st;
}

dt_status dt_store_run_restore(dt_store *store, bool *restored, const char *run, dt_error *err)
{
    dt_sql_group group = {0};
    int64_t number, attempt;
    dt_run_state state;
    dt_standing standing;
    dt_status st = DT_OK;
    dt_arena arena;

    *restored = false;
    dt_arena_init(&arena, 0);
    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_run_newest(store, &number, &attempt, &state, run, err));
    DT_TRY(dt_store_run_standing(store, &standing, run, &arena, err));
    if (state != DT_RUN_FAILED || standing.attempt == attempt || standing.state != DT_RUN_FINISHED)
        goto out;
    /* A finished run has done all its steps. If their number is unknown, the step stays as it is. */
    DT_TRY(DT_SQL_RUN(store, err,
                      "UPDATE runs SET attempt = ?2, step = coalesce((SELECT nullif(steps_total, 0)"
                      " FROM attempts WHERE run = ?1 AND attempt = ?2), step) WHERE run = ?1",
                      DT_INT(number), DT_INT(standing.attempt)));
    /* Failed attempts before their first step undo nothing: they start where the run ended. */
    DT_TRY(DT_SQL_RUN(store, err,
                      "UPDATE attempts SET start_step = max(start_step, (SELECT step FROM runs"
                      " WHERE run = ?1)) WHERE run = ?1 AND attempt > ?2 AND first_step_ms IS NULL",
                      DT_INT(number), DT_INT(standing.attempt)));
    *restored = true;
out:
    dt_arena_release(&arena);
    return dt_sql_group_end(&group, st, err);
}

/* --- a second copy of plan.json and place.json */

dt_status dt_store_plan_set(dt_store *store, const char *run, int64_t attempt, const char *text,
                            dt_error *err)
{
    dt_status st = DT_OK;
    int64_t number;

    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_RUN(store, err,
                      "UPDATE attempts SET plan_json = ?3 WHERE run = ?1 AND attempt = ?2",
                      DT_INT(number), DT_INT(attempt), DT_TEXT(text)));
out:
    return st;
}

dt_status dt_store_place_set(dt_store *store, const char *run, int64_t attempt, int64_t node,
                             const char *text, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t number;

    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_RUN(store, err,
                      "UPDATE nodes SET place_json = ?4 WHERE run = ?1 AND attempt = ?2"
                      " AND node = ?3",
                      DT_INT(number), DT_INT(attempt), DT_INT(node), DT_TEXT(text)));
out:
    return st;
}

dt_status dt_store_plan_get(dt_store *store, const char **text, const char *run, int64_t attempt,
                            dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t number;
    bool found;

    *text = "";
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_FIRST(text, &found, &dt_sql_one_text, store, arena, err,
                        "SELECT plan_json FROM attempts WHERE run = ?1 AND attempt = ?2",
                        DT_INT(number), DT_INT(attempt)));
out:
    return st;
}

dt_status dt_store_place_get(dt_store *store, const char **text, const char *run, int64_t attempt,
                             int64_t node, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t number;
    bool found;

    *text = "";
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(
        DT_SQL_FIRST(text, &found, &dt_sql_one_text, store, arena, err,
                     "SELECT place_json FROM nodes WHERE run = ?1 AND attempt = ?2 AND node = ?3",
                     DT_INT(number), DT_INT(attempt), DT_INT(node)));
out:
    return st;
}
