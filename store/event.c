/* event: stores events, in order of arrival. An event with a known journal number is ignored, so that nodes
 * can send it again.
 */
#include "store/repair.h"
#include "store/store_int.h"

#define EVENT(X)                            \
    X(dt_store_event, attempt, "attempt")   \
    X(dt_store_event, node, "node")         \
    X(dt_store_event, sequence, "sequence") \
    X(dt_store_event, rank, "rank")         \
    X(dt_store_event, time_ms, "time_ms")   \
    X(dt_store_event, kind, "kind")         \
    X(dt_store_event, json, "json")
#define STORED_EVENT(X) X(dt_store_event, id, "event") EVENT(X)

static const dt_sql_row event_row = DT_SQL_ROW(dt_store_event, EVENT),
                        stored_row = DT_SQL_ROW(dt_store_event, STORED_EVENT);

dt_status dt_store_event_add(dt_store *store, const char *run, const dt_store_event *event,
                             dt_error *err)
{
    return dt_sql_put(store,
                      DT_SQL_INSERT("events", EVENT, "run", "?",
                                    "(run, attempt, node, sequence) WHERE node >= 0 DO NOTHING"),
                      &event_row, event, run, NULL, 0, err);
}

dt_status dt_store_event_has(dt_store *store, bool *has, const char *run,
                             const dt_store_event *event, dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};

    *has = false;
    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err,
                       "SELECT 1 FROM events e JOIN runs r USING (run) WHERE r.id = ?1 AND"
                       " e.attempt = ?2 AND e.node = ?3 AND e.sequence = ?4 AND e.node >= 0 AND"
                       " e.kind = ?5",
                       DT_TEXT(run), DT_INT(event->attempt), DT_INT(event->node),
                       DT_INT(event->sequence), DT_TEXT(event->kind)));
    DT_TRY(dt_sql_next(&rows, has, err));
out:
    dt_sql_close(&rows);
    return st;
}

dt_status dt_store_event_list(dt_store *store, dt_store_event **out, int64_t *count,
                              const char *run, int64_t after_id, int64_t limit, dt_arena *arena,
                              dt_error *err)
{
    return DT_SQL_LIST_OF_RUN(
        out, count, &stored_row, store, run, arena, err,
        DT_SQL_SELECT(STORED_EVENT,
                      "FROM events WHERE run = ?1 AND event > ?2 ORDER BY event LIMIT ?3"),
        DT_INT(after_id), DT_INT(limit > 0 ? limit : -1));
}
