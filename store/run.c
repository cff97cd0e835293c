/* run: stores one row per run with the values that lists show and the labels of its user; attempt.c changes
 * its state. */
#include "store/note.h"
#include "store/store_int.h"

#include <math.h>
#include <string.h>

#include "base/process.h"

typedef struct newest {
    int64_t run, attempt;
    dt_run_state state;
} newest;
#define NEWEST(X) \
    X(newest, run, "r.run") X(newest, attempt, "r.attempt") X(newest, state, DT_SQL_SHOWN_STATE)

static const dt_sql_row newest_row = DT_SQL_ROW(newest, NEWEST);

dt_status dt_store_run_newest(dt_store *store, int64_t *number, int64_t *attempt,
                              dt_run_state *state, const char *id, dt_error *err)
{
    dt_status st = DT_OK;
    newest one = {0};
    dt_arena arena;
    bool found;

    dt_arena_init(&arena, 512);
    DT_TRY(DT_SQL_FIRST(
        &one, &found, &newest_row, store, &arena, err,
        DT_SQL_SELECT(NEWEST, "FROM runs r JOIN attempts a"
                              " ON a.run = r.run AND a.attempt = r.attempt WHERE r.id = ?1"),
        DT_TEXT(id)));
    if (!found)
        DT_THROW(err, DT_ERR_NOT_FOUND, "no run has the id '%s'", id);
    *number = one.run;
    *attempt = one.attempt;
    *state = one.state;
out:
    dt_arena_release(&arena);
    return st;
}

static dt_status id_must_be_unused(dt_store *store, const char *id, dt_error *err)
{
    dt_error none = DT_ERROR_INIT;
    int64_t number;
    dt_status st = dt_store_run_number(store, &number, id, &none);

    if (st == DT_ERR_NOT_FOUND)
        return DT_OK;
    if (st == DT_OK)
        return DT_FAIL(err, DT_ERR_BUSY, "a run with the id '%s' exists already", id);
    return DT_FAIL(err, st, "%s", none.message);
}

dt_status dt_store_run_add(dt_store *store, const dt_run *run, dt_error *err)
{
    dt_sql_group group = {0};
    dt_status st = DT_OK;

    DT_ASSERT(run->id != NULL && run->id[0] != '\0');
    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(id_must_be_unused(store, run->id, err));
    DT_TRY(DT_SQL_RUN(
        store, err,
        "INSERT INTO runs (id, name, created_ms, attempt, recipe_path, recipe_text,"
        " tags, note, run_group, parent, parent_step, step)"
        " VALUES (?1, ?2, ?3, 1, coalesce(?4, ''), coalesce(?5, ''), coalesce(?6, ''),"
        " coalesce(?7, ''), coalesce(?8, ''), coalesce(?9, ''), ?10, ?10)",
        DT_TEXT(run->id), DT_TEXT(run->name), DT_INT(run->created_ms), DT_TEXT(run->recipe_path),
        DT_TEXT(run->recipe_text), DT_TEXT(run->tags), DT_TEXT(run->note), DT_TEXT(run->group),
        DT_TEXT(run->parent), DT_INT(run->parent_step)));
    DT_TRY(DT_SQL_RUN(
        store, err,
        "INSERT INTO attempts (run, attempt, state, start_step, steps_total,"
        " created_ms, recipe_json, recipe_hash, reason)"
        " SELECT run, 1, 'queued', parent_step, ?2, ?3, coalesce(?4, ''), coalesce(?5, ''), ?6"
        " FROM runs WHERE id = ?1",
        DT_TEXT(run->id), DT_INT(run->steps_total), DT_INT(run->created_ms),
        DT_TEXT(run->recipe_json), DT_TEXT(run->recipe_hash),
        DT_TEXT(run->state == DT_RUN_WAITING ? DT_SQL_WAITING : "")));
out:
    return dt_sql_group_end(&group, st, err);
}

dt_status dt_store_run_set_progress(dt_store *store, const char *run, int64_t step, double loss,
                                    double valid_loss, double tokens_per_second, int64_t now_ms,
                                    dt_error *err)
{
    dt_sql_group group = {0};
    dt_status st = DT_OK;
    int64_t number;

    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_RUN(store, err,
                      "UPDATE runs SET step = ?2, loss = coalesce(?3, loss),"
                      " valid_loss = coalesce(?4, valid_loss),"
                      " tokens_per_second = coalesce(?5, tokens_per_second) WHERE run = ?1",
                      DT_INT(number), DT_INT(step), DT_REAL(loss), DT_REAL(valid_loss),
                      DT_REAL(tokens_per_second)));
    DT_TRY(DT_SQL_RUN(store, err,
                      "UPDATE attempts SET first_step_ms = ?2 WHERE run = ?1"
                      " AND attempt = (SELECT attempt FROM runs WHERE run = ?1)"
                      " AND first_step_ms IS NULL",
                      DT_INT(number), DT_INT(now_ms)));
out:
    return dt_sql_group_end(&group, st, err);
}

dt_status dt_store_run_set_steps_total(dt_store *store, const char *run, int64_t steps_total,
                                       dt_error *err)
{
    return DT_SQL_RUN(store, err,
                      "UPDATE attempts SET steps_total = ?2"
                      " WHERE (run, attempt) = (SELECT run, attempt FROM runs WHERE id = ?1)",
                      DT_TEXT(run), DT_INT(steps_total));
}

dt_status dt_store_run_label(dt_store *store, const char *run, const dt_labels *labels,
                             dt_error *err)
{
    dt_sql_group group = {0};
    dt_status st = DT_OK;
    int64_t number;

    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_run_number(store, &number, run, err));
    if (labels->now_ms > 0)
        DT_TRY(dt_labels_record(store, run, labels, err));
    DT_TRY(DT_SQL_RUN(store, err,
                      "UPDATE runs SET name = coalesce(?2, name), tags = coalesce(?3, tags),"
                      " note = coalesce(?4, note), run_group = coalesce(?5, run_group)"
                      " WHERE run = ?1",
                      DT_INT(number), DT_TEXT(labels->name), DT_TEXT(labels->tags),
                      DT_TEXT(labels->note), DT_TEXT(labels->group)));
out:
    return dt_sql_group_end(&group, st, err);
}

dt_status dt_store_run_remove(dt_store *store, const char *run, dt_error *err)
{
    dt_sql_group group = {0};
    dt_status st = DT_OK;
    int64_t number;

    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_RUN(store, err, "DELETE FROM runs WHERE run = ?1", DT_INT(number)));
out:
    return dt_sql_group_end(&group, st, err);
}
