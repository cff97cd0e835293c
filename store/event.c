/* event: stores events, in order of arrival. An event with a known journal number is ignored, so that nodes
 * can send it again.
 */
#include "store/repair.h"
#include "store/store_int.h"

#include "base/banned.h"

dt_status dt_store_event_add(dt_store *store, const char *run, const dt_store_event *event,
                             dt_error *err)
{
    dt_status st = DT_OK;
    int64_t number;

    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_RUN(store, err,
                      "INSERT INTO events (run, attempt, node, sequence, rank, time_ms, kind, json)"
                      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
                      " ON CONFLICT (run, attempt, node, sequence) WHERE node >= 0 DO NOTHING",
                      DT_INT(number), DT_INT(event->attempt), DT_INT(event->node),
                      DT_INT(event->sequence), DT_INT(event->rank), DT_INT(event->time_ms),
                      DT_TEXT(event->kind), DT_TEXT(event->json)));
out:
    return st;
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

static dt_status event_read(void *item, dt_sql_rows *rows, dt_error *err)
{
    dt_store_event *event = item;

    event->id = dt_sql_int(rows);
    event->attempt = dt_sql_int(rows);
    event->node = dt_sql_int(rows);
    event->sequence = dt_sql_int(rows);
    event->rank = dt_sql_int(rows);
    event->time_ms = dt_sql_int(rows);
    event->kind = dt_sql_text(rows);
    event->json = dt_sql_text(rows);
    return DT_OK;
}

dt_status dt_store_event_list(dt_store *store, dt_store_event **out, int64_t *count,
                              const char *run, int64_t after_id, int64_t limit, dt_arena *arena,
                              dt_error *err)
{
    const dt_sql_selection selection = {
        .sql = "SELECT event, attempt, node, sequence, rank, time_ms, kind, json"
               " FROM events WHERE run = ?1 AND event > ?2 ORDER BY event LIMIT ?3",
        .item_bytes = sizeof(**out),
        .read = event_read,
        .more = {DT_INT(after_id), DT_INT(limit > 0 ? limit : -1)},
        .more_count = 2,
    };
    void *items;
    dt_status st = dt_sql_list_of_run(store, &items, count, run, &selection, arena, err);

    *out = items;
    return st;
}
