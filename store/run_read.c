/* run_read: finds a run by user input, and lists runs. */
#include <string.h>

#include "base/names.h"
#include "base/strbuf.h"
#include "store/store_int.h"

/* --- one run, and lists */

#define CANDIDATES_SHOWN 6

#define ENDED_ATTEMPTS_MS                                                    \
    "(SELECT sum(max(0, coalesce(e.elapsed_ms, e.ended_ms - e.started_ms)))" \
    " FROM attempts e WHERE e.run = r.run AND e.started_ms IS NOT NULL AND"  \
    " e.ended_ms IS NOT NULL)"
#define RUN(X)                                          \
    X(dt_run, id, "r.id")                               \
    X(dt_run, name, "r.name")                           \
    X(dt_run, state, DT_SQL_SHOWN_STATE)                \
    X(dt_run, attempt, "r.attempt")                     \
    X(dt_run, created_ms, "r.created_ms")               \
    X(dt_run, started_ms, "a.started_ms")               \
    X(dt_run, ended_ms, "a.ended_ms")                   \
    X(dt_run, first_step_ms, "a.first_step_ms")         \
    X(dt_run, step, "r.step")                           \
    X(dt_run, steps_total, "a.steps_total")             \
    X(dt_run, loss, "r.loss")                           \
    X(dt_run, valid_loss, "r.valid_loss")               \
    X(dt_run, tokens_per_second, "r.tokens_per_second") \
    X(dt_run, recipe_path, "r.recipe_path")             \
    X(dt_run, recipe_text, "r.recipe_text")             \
    X(dt_run, recipe_json, "a.recipe_json")             \
    X(dt_run, recipe_hash, "a.recipe_hash")             \
    X(dt_run, exit_code, "a.exit_code")                 \
    X(dt_run, reason, DT_SQL_SHOWN_REASON)              \
    X(dt_run, boot_id, "a.boot_id")                     \
    X(dt_run, started_boot_ms, "a.started_boot_ms")     \
    X(dt_run, ended_attempts_ms, ENDED_ATTEMPTS_MS)     \
    X(dt_run, tags, "r.tags")                           \
    X(dt_run, note, "r.note")                           \
    X(dt_run, group, "r.run_group")                     \
    X(dt_run, parent, "r.parent")                       \
    X(dt_run, parent_step, "r.parent_step")
#define SELECT_RUN                                                                              \
    DT_SQL_SELECT(RUN, "FROM runs r JOIN attempts a ON a.run = r.run AND a.attempt = r.attempt" \
                       " WHERE" DT_SQL_IS_SOUND " AND ")

static const dt_sql_row run_row = DT_SQL_ROW(dt_run, RUN);

/* Finds the first run of a query with one text as its parameter. */
static dt_status first_of(dt_store *store, dt_run *out, bool *found, const char *sql,
                          const char *text, dt_arena *arena, dt_error *err)
{
    return DT_SQL_FIRST(out, found, &run_row, store, arena, err, sql, DT_TEXT(text));
}

/* Finds a run by a unique prefix of its id; *found is false if no id has the prefix. */
static dt_status by_prefix(dt_store *store, dt_run *out, bool *found, const char *ref,
                           dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf candidates;
    int64_t count;
    dt_run *runs;

    dt_strbuf_init(&candidates);
    *found = false;
    if (strlen(ref) < DT_RUN_PREFIX_LEAST)
        goto out;
    DT_TRY(DT_SQL_LIST(&runs, &count, &run_row, store, arena, err,
                       SELECT_RUN "substr(r.id, 1, length(?1)) = ?1 ORDER BY r.run DESC",
                       DT_TEXT(ref)));
    *found = count == 1;
    if (*found)
        *out = runs[0];
    for (int64_t i = 0; i < count && i < CANDIDATES_SHOWN; i++)
        dt_strbuf_add_fmt(&candidates, "%s%s (%s)", i > 0 ? ", " : "", runs[i].id, runs[i].name);
    if (count > 1)
        DT_THROW(
            err, DT_ERR_USAGE,
            "'%s' is ambiguous, the ids of %lld runs begin with it: %s%s (give more of the id)",
            ref, (long long)count, candidates.data, count > CANDIDATES_SHOWN ? ", ..." : "");
out:
    dt_strbuf_release(&candidates);
    return st;
}

static dt_status refuse_unknown(dt_store *store, const char *ref, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t members = 0;
    bool found;

    DT_TRY(DT_SQL_FIRST(&members, &found, &dt_sql_one_int, store, NULL, err,
                        "SELECT count(*) FROM runs WHERE run_group = ?1", DT_TEXT(ref)));
    if (members > 0)
        DT_THROW(
            err, DT_ERR_NOT_FOUND,
            "'%s' is a group of %lld run%s; expected one run ('dtrun list --group %s' shows them)",
            ref, (long long)members, members == 1 ? "" : "s", ref);
    if (strlen(ref) < DT_RUN_PREFIX_LEAST) {
        DT_TRY(DT_SQL_FIRST(&members, &found, &dt_sql_one_int, store, NULL, err,
                            "SELECT count(*) FROM runs WHERE substr(id, 1, length(?1)) = ?1",
                            DT_TEXT(ref)));
        if (members > 0)
            DT_THROW(
                err, DT_ERR_NOT_FOUND,
                "unknown run '%s': the beginning of an id needs at least %d characters ('dtrun "
                "list' shows all)",
                ref, DT_RUN_PREFIX_LEAST);
    }
    DT_THROW(err, DT_ERR_NOT_FOUND, "unknown run '%s' ('dtrun list' shows all)", ref);
out:
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
    DT_TRY(first_of(store, out, &found, SELECT_RUN "r.id = ?1", ref, arena, err));
    if (!found && strcmp(ref, DT_RUN_LAST) == 0) {
        DT_TRY(first_of(store, out, &found, SELECT_RUN "?1 IS NOT NULL ORDER BY r.run DESC LIMIT 1",
                        ref, arena, err));
        if (!found)
            DT_THROW(err, DT_ERR_NOT_FOUND, "no runs yet ('dtrun launch RECIPE' starts one)");
    }
    if (!found)
        DT_TRY(first_of(store, out, &found, SELECT_RUN "r.name = ?1 ORDER BY r.run DESC LIMIT 1",
                        ref, arena, err));
    if (!found)
        DT_TRY(by_prefix(store, out, &found, ref, arena, err));
    if (!found)
        DT_TRY(refuse_unknown(store, ref, err));
out:
    return st;
}

/* As dt_store_run_list, but only runs older than the run `after`, to read a list page by page. */
static dt_status store_run_list_after(dt_store *store, dt_run **out, int64_t *count, int state,
                                      const char *after, int64_t limit, dt_arena *arena,
                                      dt_error *err)
{
    return DT_SQL_LIST(out, count, &run_row, store, arena, err,
                       SELECT_RUN
                       "(?1 IS NULL OR " DT_SQL_SHOWN_STATE " = ?1)"
                       " AND (?3 IS NULL OR r.run < (SELECT run FROM runs WHERE id = ?3))"
                       " ORDER BY r.run DESC LIMIT ?2",
                       DT_TEXT(state < 0 ? NULL : dt_run_state_name((dt_run_state)state)),
                       DT_INT(limit > 0 ? limit : -1), DT_TEXT(after));
}

dt_status dt_store_run_list(dt_store *store, dt_run **out, int64_t *count, int state, int64_t limit,
                            dt_arena *arena, dt_error *err)
{
    return store_run_list_after(store, out, count, state, NULL, limit, arena, err);
}

dt_status dt_store_run_list_since(dt_store *store, dt_run **out, int64_t *count, int64_t ended_ms,
                                  dt_arena *arena, dt_error *err)
{
    return DT_SQL_LIST(out, count, &run_row, store, arena, err,
                       SELECT_RUN
                       "(a.state NOT IN ('finished', 'failed', 'stopped') OR a.ended_ms >= ?1)"
                       " ORDER BY r.run DESC",
                       DT_INT(ended_ms));
}

dt_status dt_store_run_states(dt_store *store, const char **out, dt_arena *arena, dt_error *err)
{
    bool found;

    return DT_SQL_FIRST(out, &found, &dt_sql_one_text, store, arena, err,
                        "SELECT coalesce(group_concat(r.run || ' ' || a.attempt || ' ' ||"
                        " " DT_SQL_SHOWN_STATE
                        "), '') FROM runs r JOIN attempts a ON a.run = r.run AND"
                        " a.attempt = r.attempt WHERE a.ended_ms IS NULL");
}

#define MARK(X)                          \
    X(dt_run_mark, id, "r.id")           \
    X(dt_run_mark, attempt, "a.attempt") \
    X(dt_run_mark, ended, "a.ended_ms IS NOT NULL")

static const dt_sql_row mark_row = DT_SQL_ROW(dt_run_mark, MARK);

dt_status dt_store_run_marks(dt_store *store, dt_run_mark **out, int64_t *count, dt_arena *arena,
                             dt_error *err)
{
    return DT_SQL_LIST(out, count, &mark_row, store, arena, err,
                       DT_SQL_SELECT(MARK,
                                     "FROM runs r JOIN attempts a ON a.run = r.run AND a.attempt ="
                                     " (SELECT max(attempt) FROM attempts WHERE run = r.run)"
                                     " WHERE ?1 AND" DT_SQL_IS_SOUND " ORDER BY r.id"),
                       DT_INT(1));
}
