/* search: finds runs by state and words, sorted, page by page.
 *
 * Returns only ids, so that the rows, with large recipes, are read only for the runs that are shown.
 */
#include "store/store_int.h"

#include <string.h>

#define ACTIVE "active" /* used in place of a state in MATCHES: a run that has not ended */
#define MATCHES                                                                       \
    " FROM runs r JOIN attempts a ON a.run = r.run AND a.attempt = r.attempt"         \
    " WHERE" DT_SQL_IS_SOUND " AND (?1 IS NULL OR a.state = ?1 OR (?1 = 'active' AND" \
    " a.state NOT IN ('finished', 'failed', 'stopped')))"                             \
    " AND (?2 IS NULL OR instr(lower(r.name || ' ' || r.id || ' ' || r.tags ||"       \
    " ' ' || r.run_group || ' ' || r.note), lower(?2)) > 0)"

static const struct {
    /* Values that are not numbers, then unknown values, come last in both; equal values: the newer run first. */
    const char *name, *rising, *falling;
} orders[] = {
    /* ordered by the primary key: only the requested page is read */
    {"created", "SELECT r.id" MATCHES " ORDER BY r.run LIMIT ?3 OFFSET ?4",
     "SELECT r.id" MATCHES " ORDER BY r.run DESC LIMIT ?3 OFFSET ?4"},
#define LAST(column) "coalesce(abs(" column ") > 1.7976931348623157e308, 2)"
#define ORDER(key, column)                                                                     \
    {                                                                                          \
        key,                                                                                   \
            "SELECT r.id" MATCHES " ORDER BY " LAST(column) ", " column                        \
                                                            ", r.run DESC LIMIT ?3 OFFSET ?4", \
            "SELECT r.id" MATCHES " ORDER BY " LAST(column) ", " column                        \
                                                            " DESC, r.run DESC LIMIT ?3"       \
                                                            " OFFSET ?4"                       \
    }
    ORDER("name", "r.name"),
    ORDER("state", "a.state"),
    ORDER("step", "r.step"),
    ORDER("loss", "r.loss"),
    ORDER("valid_loss", "r.valid_loss"),
    ORDER("tokens_per_second", "r.tokens_per_second"),
    ORDER("elapsed", "coalesce(a.elapsed_ms, a.ended_ms - a.started_ms)"),
#undef ORDER
#undef LAST
};

static const char *order_of(const dt_run_search *search)
{
    const char *wanted = search->sort != NULL ? search->sort : orders[0].name;

    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
        if (strcmp(orders[i].name, wanted) == 0)
            return search->rising ? orders[i].rising : orders[i].falling;
    return NULL;
}

static dt_status total_read(dt_store *store, int64_t *total, const char *state, const char *words,
                            dt_error *err)
{
    bool found;

    if (state == NULL && words == NULL) /* every run has its newest attempt */
        return DT_SQL_FIRST(total, &found, &dt_sql_one_int, store, NULL, err,
                            "SELECT count(*) FROM runs r WHERE" DT_SQL_RUN_IS_SOUND);
    return DT_SQL_FIRST(total, &found, &dt_sql_one_int, store, NULL, err, "SELECT count(*)" MATCHES,
                        DT_TEXT(state), DT_TEXT(words));
}

dt_status dt_store_run_search(dt_store *store, const char ***ids, int64_t *count, int64_t *total,
                              const dt_run_search *search, dt_arena *arena, dt_error *err)
{
    const char *state = search->state >= 0 ? dt_run_state_name((dt_run_state)search->state)
                        : search->state == DT_RUN_SEARCH_ACTIVE ? ACTIVE
                                                                : NULL;
    const char *sql = order_of(search);
    dt_status st = DT_OK;

    *ids = NULL;
    *count = *total = 0;
    if (sql == NULL)
        DT_THROW(err, DT_ERR_USAGE, "cannot sort runs by '%.32s'", search->sort);
    DT_TRY(DT_SQL_LIST(ids, count, &dt_sql_one_text, store, arena, err, sql, DT_TEXT(state),
                       DT_TEXT(search->words), DT_INT(search->limit > 0 ? search->limit : -1),
                       DT_INT(search->offset)));
    *total = search->offset + *count;
    /* The page may not be the only one. */
    if (*count == search->limit || (*count == 0 && search->offset > 0))
        DT_TRY(total_read(store, total, state, search->words, err));
out:
    return st;
}

dt_status dt_store_run_count_active(dt_store *store, int64_t *count, dt_error *err)
{
    return total_read(store, count, ACTIVE, NULL, err);
}
