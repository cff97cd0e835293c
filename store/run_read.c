/* run_read: finds a run by user input, and lists runs. */
#include "store/store_int.h"

#include <string.h>

#include "base/run_name.h"
#include "base/strbuf.h"

#include "base/banned.h"

#define CANDIDATES_SHOWN 6

dt_status dt_sql_state(dt_sql_rows *rows, dt_run_state *out, dt_error *err)
{
    const char *name = dt_sql_text(rows);

    if (!dt_run_state_parse(out, name))
        return DT_FAIL(err, DT_ERR_CORRUPT, "the run store '%s' is damaged: unknown state '%s'",
                       rows->store->path, name);
    return DT_OK;
}

dt_status dt_store_run_read(void *run, dt_sql_rows *rows, dt_error *err)
{
    dt_run *out = run;
    dt_status st;

    out->id = dt_sql_text(rows);
    out->name = dt_sql_text(rows);
    st = dt_sql_state(rows, &out->state, err);
    if (st != DT_OK)
        return st;
    out->attempt = dt_sql_int(rows);
    out->created_ms = dt_sql_int(rows);
    out->started_ms = dt_sql_int(rows);
    out->ended_ms = dt_sql_int(rows);
    out->first_step_ms = dt_sql_int(rows);
    out->step = dt_sql_int(rows);
    out->steps_total = dt_sql_int(rows);
    out->loss = dt_sql_real(rows);
    out->valid_loss = dt_sql_real(rows);
    out->tokens_per_second = dt_sql_real(rows);
    out->recipe_path = dt_sql_text(rows);
    out->recipe_text = dt_sql_text(rows);
    out->recipe_json = dt_sql_text(rows);
    out->recipe_hash = dt_sql_text(rows);
    out->exit_code = (int)dt_sql_int_or(rows, -1);
    out->reason = dt_sql_text(rows);
    out->boot_id = dt_sql_text(rows);
    out->started_boot_ms = dt_sql_int(rows);
    out->ended_attempts_ms = dt_sql_int(rows);
    out->tags = dt_sql_text(rows);
    out->note = dt_sql_text(rows);
    out->group = dt_sql_text(rows);
    out->parent = dt_sql_text(rows);
    out->parent_step = dt_sql_int(rows);
    return DT_OK;
}

/* Finds the first run of a query with one text as its parameter. */
static dt_status first_of(dt_store *store, dt_run *out, bool *found, const char *sql,
                          const char *text, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};

    DT_TRY(DT_SQL_OPEN(&rows, store, arena, err, sql, DT_TEXT(text)));
    DT_TRY(dt_sql_next(&rows, found, err));
    if (*found)
        DT_TRY(dt_store_run_read(out, &rows, err));
out:
    dt_sql_close(&rows);
    return st;
}

/* Finds a run by a unique prefix of its id; *found is false if no id has the prefix. */
static dt_status by_prefix(dt_store *store, dt_run *out, bool *found, const char *ref,
                           dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};
    dt_strbuf candidates;
    int64_t count = 0;
    dt_run other;
    bool more;

    dt_strbuf_init(&candidates);
    DT_TRY(DT_SQL_OPEN(&rows, store, arena, err,
                       DT_RUN_COLUMNS "WHERE substr(r.id, 1, length(?1)) = ?1 ORDER BY r.run DESC",
                       DT_TEXT(ref)));
    for (;;) {
        DT_TRY(dt_sql_next(&rows, &more, err));
        if (!more)
            break;
        DT_TRY(dt_store_run_read(count == 0 ? out : &other, &rows, err));
        if (count < CANDIDATES_SHOWN)
            dt_strbuf_add_fmt(&candidates, "%s%s (%s)", count > 0 ? ", " : "",
                              count == 0 ? out->id : other.id, count == 0 ? out->name : other.name);
        count++;
    }
    *found = count == 1;
    if (count > 1)
        DT_THROW(
            err, DT_ERR_USAGE,
            "'%s' is ambiguous, the ids of %lld runs begin with it: %s%s (give more of the id)",
            ref, (long long)count, candidates.data, count > CANDIDATES_SHOWN ? ", ..." : "");
out:
    dt_sql_close(&rows);
    dt_strbuf_release(&candidates);
    return st;
}

static dt_status say_unknown(dt_store *store, const char *ref, dt_error *err)
{
    dt_sql_rows rows = {0};
    dt_status st = DT_OK;
    int64_t members;
    bool found;

    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err, "SELECT count(*) FROM runs WHERE run_group = ?1",
                       DT_TEXT(ref)));
    DT_TRY(dt_sql_next(&rows, &found, err));
    members = dt_sql_int(&rows);
    if (members > 0)
        DT_THROW(
            err, DT_ERR_NOT_FOUND,
            "'%s' is a group of %lld run%s; expected one run ('dtrun list --group %s' shows them)",
            ref, (long long)members, members == 1 ? "" : "s", ref);
    DT_THROW(err, DT_ERR_NOT_FOUND, "unknown run '%s' ('dtrun list' shows all)", ref);
out:
    dt_sql_close(&rows);
    return st;
}

dt_status dt_store_run_find(dt_store *store, dt_run *out, const char *ref, dt_arena *arena,
                            dt_error *err)
{
    dt_status st = DT_OK;
    bool found = false;

    memset(out, 0, sizeof(*out));
    if (ref[0] == '\0')
        return DT_FAIL(err, DT_ERR_USAGE,
                       "the name of the run is empty: expected an id, the beginning of an id, a "
                       "name, or 'last'");
    DT_TRY(first_of(store, out, &found, DT_RUN_COLUMNS "WHERE r.id = ?1", ref, arena, err));
    if (!found && strcmp(ref, DT_RUN_LAST) == 0) {
        DT_TRY(first_of(store, out, &found,
                        DT_RUN_COLUMNS "WHERE ?1 IS NOT NULL ORDER BY r.run DESC LIMIT 1", ref,
                        arena, err));
        if (!found)
            DT_THROW(err, DT_ERR_NOT_FOUND, "no runs yet ('dtrun launch RECIPE' starts one)");
    }
    if (!found)
        DT_TRY(first_of(store, out, &found,
                        DT_RUN_COLUMNS "WHERE r.name = ?1 ORDER BY r.run DESC LIMIT 1", ref, arena,
                        err));
    if (!found)
        DT_TRY(by_prefix(store, out, &found, ref, arena, err));
    if (!found)
        DT_TRY(say_unknown(store, ref, err));
out:
    return st;
}

dt_status dt_store_run_list_after(dt_store *store, dt_run **out, int64_t *count, int state,
                                  const char *after, int64_t limit, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};
    void *items = NULL;

    *out = NULL;
    *count = 0;
    DT_TRY(DT_SQL_OPEN(&rows, store, arena, err,
                       DT_RUN_COLUMNS
                       "WHERE (?1 IS NULL OR a.state = ?1)"
                       " AND (?3 IS NULL OR r.run < (SELECT run FROM runs WHERE id = ?3))"
                       " ORDER BY r.run DESC LIMIT ?2",
                       DT_TEXT(state < 0 ? NULL : dt_run_state_name((dt_run_state)state)),
                       DT_INT(limit > 0 ? limit : -1), DT_TEXT(after)));
    DT_TRY(dt_sql_list(&rows, &items, count, sizeof(**out), dt_store_run_read, err));
    *out = items;
out:
    dt_sql_close(&rows);
    return st;
}

dt_status dt_store_run_list(dt_store *store, dt_run **out, int64_t *count, int state, int64_t limit,
                            dt_arena *arena, dt_error *err)
{
    return dt_store_run_list_after(store, out, count, state, NULL, limit, arena, err);
}

dt_status dt_store_run_list_since(dt_store *store, dt_run **out, int64_t *count, int64_t ended_ms,
                                  dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};
    void *items = NULL;

    *out = NULL;
    *count = 0;
    DT_TRY(DT_SQL_OPEN(&rows, store, arena, err,
                       DT_RUN_COLUMNS
                       "WHERE a.state NOT IN ('finished', 'failed', 'stopped') OR a.ended_ms >= ?1"
                       " ORDER BY r.run DESC",
                       DT_INT(ended_ms)));
    DT_TRY(dt_sql_list(&rows, &items, count, sizeof(**out), dt_store_run_read, err));
    *out = items;
out:
    dt_sql_close(&rows);
    return st;
}

static dt_status mark_read(void *item, dt_sql_rows *rows, dt_error *err)
{
    dt_run_mark *mark = item;

    mark->id = dt_sql_text(rows);
    mark->attempt = dt_sql_int(rows);
    mark->ended = dt_sql_int(rows) != 0;
    return DT_OK;
}

dt_status dt_store_run_marks(dt_store *store, dt_run_mark **out, int64_t *count, dt_arena *arena,
                             dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};
    void *items = NULL;

    *count = 0;
    DT_TRY(DT_SQL_OPEN(&rows, store, arena, err,
                       "SELECT r.id, a.attempt, a.ended_ms IS NOT NULL FROM runs r"
                       " JOIN attempts a ON a.run = r.run AND a.attempt ="
                       " (SELECT max(attempt) FROM attempts WHERE run = r.run)"
                       " WHERE ?1 ORDER BY r.id",
                       DT_INT(1)));
    DT_TRY(dt_sql_list(&rows, &items, count, sizeof(**out), mark_read, err));
out:
    *out = items;
    dt_sql_close(&rows);
    return st;
}
