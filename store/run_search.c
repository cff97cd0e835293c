/* run_search: finds runs by state, words, labels and values, sorted, page by page.
 *
 * Returns only ids, so that the rows, with large recipes, are read only for the runs that are shown. A search by values reads
 * every run that matches the rest.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/run_value.h"
#include "store/store_int.h"

/* --- search: runs that pass all filters, sorted by the value of any key */

typedef struct candidate {
    const char *id;
    dt_run_value value; /* of the key of the order */
    size_t place;       /* order of equal values: the newest first */
} candidate;

static int compare(const void *left, const void *right, void *falling)
{
    const candidate *a = left, *b = right;
    int order = dt_run_value_order(&a->value, &b->value, *(const bool *)falling);

    return order != 0 ? order : a->place < b->place ? -1 : 1;
}

dt_status dt_run_key_refuse_unknown(dt_store *store, const char *key, dt_error *err)
{
    dt_status st = DT_OK;
    bool known;

    DT_TRY(dt_run_key_known(store, &known, key, err));
    if (!known)
        DT_THROW(err, DT_ERR_USAGE,
                 "no run has '%.64s'; expected a recipe key, a metric, or a key of 'dtrun list "
                 "--json'",
                 key);
out:
    return st;
}

static dt_status check_keys(dt_store *store, const dt_run_search *search, dt_error *err)
{
    dt_status st = DT_OK;

    for (size_t i = 0; i < search->filters_count; i++)
        DT_TRY(dt_run_key_refuse_unknown(store, search->filters[i].key, err));
    if (search->sort != NULL)
        DT_TRY(dt_run_key_refuse_unknown(store, search->sort, err));
out:
    return st;
}

/* Reads one run, tests it, and keeps the value of the order in `kept`. A run that was removed does not pass. */
static dt_status look(bool *passes, dt_run_value *value, dt_store *store, const char *id,
                      const dt_run_search *search, dt_arena *arena, dt_arena *kept, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_run_entry entry = {0};
    dt_run_value held;
    dt_status st;
    dt_run run;

    *passes = false;
    entry.run = &run;
    st = dt_store_run_find(store, &run, id, arena, &problem);
    if (st != DT_OK) {
        st = st == DT_ERR_NOT_FOUND ? DT_OK : DT_FAIL(err, st, "%s", problem.message);
        goto out;
    }
    *passes = true;
    for (size_t i = 0; i < search->filters_count && *passes; i++) {
        DT_TRY(dt_run_value_get(&held, store, &entry, search->filters[i].key, arena, err));
        *passes = dt_run_filter_passes(&search->filters[i], &held);
    }
    if (!*passes || search->sort == NULL)
        goto out;
    DT_TRY(dt_run_value_get(value, store, &entry, search->sort, arena, err));
    value->text = dt_arena_strdup(kept, value->text);
out:
    dt_run_entry_release(&entry);
    return st;
}

/* Selects and sorts the candidates, the newest first, by the values that the search asks for. *count is 0 before. */
static dt_status search_values(dt_store *store, const char ***ids, int64_t *count, int64_t *total,
                               const dt_run_search *search, const char *const *candidates,
                               int64_t candidates_count, dt_arena *arena, dt_error *err)
{
    candidate *all = dt_arena_alloc_array(arena, (size_t)candidates_count + 1, sizeof(all[0]));
    bool falling = !search->rising, passes;
    dt_status st = DT_OK;
    dt_arena current; /* of the run that is read */
    size_t kept = 0;

    dt_arena_init(&current, 0);
    DT_TRY(check_keys(store, search, err));
    for (int64_t i = 0; i < candidates_count; i++) {
        all[kept] = (candidate){.id = candidates[i], .value = {.text = ""}, .place = kept};
        dt_arena_reset(&current);
        DT_TRY(look(&passes, &all[kept].value, store, candidates[i], search, &current, arena, err));
        kept += passes;
    }
    if (search->sort != NULL)
        qsort_r(all, kept, sizeof(all[0]), compare, &falling);
    *total = (int64_t)kept;
    *ids = dt_arena_alloc_array(arena, kept + 1, sizeof(**ids));
    for (size_t i = (size_t)search->offset; i < kept; i++) {
        if (search->limit > 0 && *count == search->limit)
            break;
        (*ids)[(*count)++] = all[i].id;
    }
out:
    dt_arena_release(&current);
    return st;
}

/* --- search: runs by what the tables have */

#define ACTIVE    "active" /* used in place of a state in MATCHES: a run that has not ended */
#define IS_ACTIVE " a.state NOT IN ('finished', 'failed', 'stopped')"
#define RUN_MATCHES                                                             \
    " AND (?2 IS NULL OR instr(lower(r.name || ' ' || r.id || ' ' || r.tags ||" \
    " ' ' || r.run_group || ' ' || r.note), lower(?2)) > 0)"                    \
    " AND (?5 IS NULL OR r.run_group = ?5)"                                     \
    " AND (?6 IS NULL OR instr(' ' || r.tags || ' ', ' ' || ?6 || ' ') > 0)"    \
    " AND (?7 OR instr(' ' || r.tags || ' ', ' " DT_ARCHIVED " ') = 0)"
#define MATCHES                                                               \
    " FROM runs r JOIN attempts a ON a.run = r.run AND a.attempt = r.attempt" \
    " WHERE" DT_SQL_IS_SOUND " AND (?1 IS NULL OR " DT_SQL_SHOWN_STATE        \
    " = ?1 OR (?1 = 'active' AND" IS_ACTIVE "))" RUN_MATCHES

/* Count what MATCHES finds in a fraction of the time: those of any state without their attempts (every run has its
 * newest), active ones beginning with the few attempts that have not ended. */
static const char count_any[] = "SELECT count(*) FROM runs r WHERE" DT_SQL_RUN_IS_SOUND RUN_MATCHES;
static const char count_active[] =
    "SELECT count(*) FROM attempts a CROSS JOIN runs r ON r.run = a.run AND r.attempt = a.attempt"
    " WHERE" IS_ACTIVE " AND" DT_SQL_IS_SOUND RUN_MATCHES;

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
    ORDER("state", DT_SQL_SHOWN_STATE),
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

static bool shows_archived(const dt_run_search *search)
{
    return search->archived || (search->tag != NULL && strcmp(search->tag, DT_ARCHIVED) == 0);
}

static dt_status total_read(dt_store *store, int64_t *total, const char *state,
                            const dt_run_search *search, dt_error *err)
{
    bool found;

    return DT_SQL_FIRST(total, &found, &dt_sql_one_int, store, NULL, err,
                        state == NULL                ? count_any
                        : strcmp(state, ACTIVE) == 0 ? count_active
                                                     : "SELECT count(*)" MATCHES,
                        DT_TEXT(state), DT_TEXT(search->words), DT_INT(0), DT_INT(0),
                        DT_TEXT(search->group), DT_TEXT(search->tag),
                        DT_INT(shows_archived(search)));
}

static dt_status page_read(dt_store *store, const char ***ids, int64_t *count, const char *sql,
                           const char *state, const dt_run_search *search, int64_t limit,
                           int64_t offset, dt_arena *arena, dt_error *err)
{
    return DT_SQL_LIST(ids, count, &dt_sql_one_text, store, arena, err, sql, DT_TEXT(state),
                       DT_TEXT(search->words), DT_INT(limit > 0 ? limit : -1), DT_INT(offset),
                       DT_TEXT(search->group), DT_TEXT(search->tag),
                       DT_INT(shows_archived(search)));
}

dt_status dt_store_run_search(dt_store *store, const char ***ids, int64_t *count, int64_t *total,
                              const dt_run_search *search, dt_arena *arena, dt_error *err)
{
    const char *state = search->state >= 0 ? dt_run_state_name((dt_run_state)search->state)
                        : search->state == DT_RUN_SEARCH_ACTIVE ? ACTIVE
                                                                : NULL;
    const char *sql = order_of(search), **candidates;
    dt_status st = DT_OK;
    int64_t matches;

    *ids = NULL;
    *count = *total = 0;
    if (sql == NULL || search->filters_count > 0) {
        DT_TRY(page_read(store, &candidates, &matches, orders[0].falling, state, search, 0, 0,
                         arena, err));
        return search_values(store, ids, count, total, search, candidates, matches, arena, err);
    }
    DT_TRY(page_read(store, ids, count, sql, state, search, search->limit, search->offset, arena,
                     err));
    *total = search->offset + *count;
    /* The page may not be the only one. */
    if (*count == search->limit || (*count == 0 && search->offset > 0))
        DT_TRY(total_read(store, total, state, search, err));
out:
    return st;
}

dt_status dt_store_run_count_active(dt_store *store, int64_t *count, dt_error *err)
{
    return total_read(store, count, ACTIVE, &(dt_run_search){.archived = true}, err);
}
