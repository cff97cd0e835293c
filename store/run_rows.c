/* run_rows: lists the rows of one run by its id. */
#include "store/store_int.h"

#include "base/banned.h"

dt_status dt_store_run_number(dt_store *store, int64_t *number, const char *id, dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};
    bool more;

    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err, "SELECT run FROM runs WHERE id = ?1", DT_TEXT(id)));
    DT_TRY(dt_sql_next(&rows, &more, err));
    if (!more)
        DT_THROW(err, DT_ERR_NOT_FOUND, "no run has the id '%s'", id);
    *number = dt_sql_int(&rows);
out:
    dt_sql_close(&rows);
    return st;
}

dt_status dt_sql_list_of_run(dt_store *store, void **items, int64_t *count, const char *id,
                             const dt_sql_selection *selection, dt_arena *arena, dt_error *err)
{
    dt_sql_value values[3] = {DT_INT(0)};
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};

    *items = NULL;
    *count = 0;
    DT_TRY(dt_store_run_number(store, &values[0].integer, id, err));
    for (size_t i = 0; i < selection->more_count; i++)
        values[i + 1] = selection->more[i];
    DT_TRY(
        dt_sql_open(&rows, store, arena, selection->sql, values, selection->more_count + 1, err));
    DT_TRY(dt_sql_list(&rows, items, count, selection->item_bytes, selection->read, err));
out:
    dt_sql_close(&rows);
    return st;
}
