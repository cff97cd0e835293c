/* checkpoint: what was saved, and where. A directory that is written again (a resumed run comes
 * past the same step) is one checkpoint: the newer.
 */
#include "store/store_int.h"

#include "base/banned.h"

dt_status dt_store_checkpoint_add(dt_store *store, const char *run,
                                  const dt_store_checkpoint *checkpoint, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t number;

    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_RUN(store, err,
                      "INSERT INTO checkpoints (run, path, attempt, step, bytes, time_ms, digest,"
                      " valid_loss, seconds) VALUES (?1, ?2, ?3, ?4, ?5, ?6, coalesce(?7, ''), ?8,"
                      " coalesce(?9, 0)) ON CONFLICT (run, path) DO UPDATE SET"
                      " attempt = excluded.attempt, step = excluded.step, bytes = excluded.bytes,"
                      " time_ms = excluded.time_ms, digest = excluded.digest,"
                      " valid_loss = excluded.valid_loss, seconds = excluded.seconds",
                      DT_INT(number), DT_TEXT(checkpoint->path), DT_INT(checkpoint->attempt),
                      DT_INT(checkpoint->step), DT_INT(checkpoint->bytes),
                      DT_INT(checkpoint->time_ms), DT_TEXT(checkpoint->digest),
                      DT_REAL(checkpoint->valid_loss), DT_REAL(checkpoint->seconds)));
out:
    return st;
}

static dt_status checkpoint_read(void *item, dt_sql_rows *rows, dt_error *err)
{
    dt_store_checkpoint *checkpoint = item;

    checkpoint->attempt = dt_sql_int(rows);
    checkpoint->step = dt_sql_int(rows);
    checkpoint->bytes = dt_sql_int(rows);
    checkpoint->time_ms = dt_sql_int(rows);
    checkpoint->path = dt_sql_text(rows);
    checkpoint->digest = dt_sql_text(rows);
    checkpoint->valid_loss = dt_sql_real(rows);
    checkpoint->seconds = dt_sql_real(rows);
    return DT_OK;
}

dt_status dt_store_checkpoint_list(dt_store *store, dt_store_checkpoint **out, int64_t *count,
                                   const char *run, dt_arena *arena, dt_error *err)
{
    const dt_sql_selection selection = {
        .sql = "SELECT attempt, step, bytes, time_ms, path, digest, valid_loss, seconds"
               " FROM checkpoints WHERE run = ?1 ORDER BY step DESC, attempt DESC",
        .item_bytes = sizeof(**out),
        .read = checkpoint_read,
    };
    void *items;
    dt_status st = dt_sql_list_of_run(store, &items, count, run, &selection, arena, err);

    *out = items;
    return st;
}
