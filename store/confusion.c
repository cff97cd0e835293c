/* confusion: lists the counts of a classifier's evaluations.
 *
 * Stored as events of rank 0:
 *   {"event": "confusion", "step", "counts": [[..], ..]}   rows by class and, within, by predicted class
 */
#include "store/store_int.h"

#define CONFUSION(X)                          \
    X(dt_store_confusion, attempt, "attempt") \
    X(dt_store_confusion, step, "step")       \
    X(dt_store_confusion, time_ms, "time_ms") \
    X(dt_store_confusion, counts, "counts")

static const dt_sql_row confusion_row = DT_SQL_ROW(dt_store_confusion, CONFUSION);

dt_status dt_store_confusion_list(dt_store *store, dt_store_confusion **out, int64_t *count,
                                  const char *run, int64_t step, dt_arena *arena, dt_error *err)
{
    return DT_SQL_LIST_OF_RUN(out, count, &confusion_row, store, run, arena, err,
                              DT_SQL_SELECT(CONFUSION, "FROM " DT_SQL_CONFUSIONS
                                                       " WHERE run = ?1 AND newer = 0 AND"
                                                       " ?2 IN (step, -1) ORDER BY step"),
                              DT_INT(step));
}

dt_status dt_store_confusion_steps(dt_store *store, int64_t **out, int64_t *count, const char *run,
                                   dt_arena *arena, dt_error *err)
{
    return DT_SQL_LIST_OF_RUN(out, count, &dt_sql_one_int, store, run, arena, err,
                              "SELECT step FROM " DT_SQL_CONFUSIONS
                              " WHERE run = ?1 AND newer = 0 ORDER BY step");
}
