/* copy: stores a second copy of plan.json and place.json of an attempt. */
#include "store/store_int.h"

#include "base/banned.h"

dt_status dt_store_plan_set(dt_store *store, const char *run, int64_t attempt, const char *text,
                            dt_error *err)
{
    dt_status st = DT_OK;
    int64_t number;

    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_RUN(store, err,
                      "UPDATE attempts SET plan_json = ?3 WHERE run = ?1 AND attempt = ?2",
                      DT_INT(number), DT_INT(attempt), DT_TEXT(text)));
out:
    return st;
}

dt_status dt_store_place_set(dt_store *store, const char *run, int64_t attempt, int64_t node,
                             const char *text, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t number;

    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_RUN(store, err,
                      "UPDATE nodes SET place_json = ?4 WHERE run = ?1 AND attempt = ?2"
                      " AND node = ?3",
                      DT_INT(number), DT_INT(attempt), DT_INT(node), DT_TEXT(text)));
out:
    return st;
}

/* Returns the text of an opened statement's only row, "" if there is none; closes the statement. */
static dt_status text_read(const char **text, dt_sql_rows *rows, dt_error *err)
{
    dt_status st;
    bool more;

    *text = "";
    DT_TRY(dt_sql_next(rows, &more, err));
    if (more)
        *text = dt_sql_text(rows);
out:
    dt_sql_close(rows);
    return st;
}

dt_status dt_store_plan_get(dt_store *store, const char **text, const char *run, int64_t attempt,
                            dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows;
    int64_t number;

    *text = "";
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_OPEN(&rows, store, arena, err,
                       "SELECT plan_json FROM attempts WHERE run = ?1 AND attempt = ?2",
                       DT_INT(number), DT_INT(attempt)));
    DT_TRY(text_read(text, &rows, err));
out:
    return st;
}

dt_status dt_store_place_get(dt_store *store, const char **text, const char *run, int64_t attempt,
                             int64_t node, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows;
    int64_t number;

    *text = "";
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_OPEN(&rows, store, arena, err,
                       "SELECT place_json FROM nodes WHERE run = ?1 AND attempt = ?2 AND node = ?3",
                       DT_INT(number), DT_INT(attempt), DT_INT(node)));
    DT_TRY(text_read(text, &rows, err));
out:
    return st;
}
