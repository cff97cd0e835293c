/* copy: stores a second copy of plan.json and place.json of an attempt. */
#include "store/store_int.h"

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

dt_status dt_store_plan_get(dt_store *store, const char **text, const char *run, int64_t attempt,
                            dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t number;
    bool found;

    *text = "";
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_FIRST(text, &found, &dt_sql_one_text, store, arena, err,
                        "SELECT plan_json FROM attempts WHERE run = ?1 AND attempt = ?2",
                        DT_INT(number), DT_INT(attempt)));
out:
    return st;
}

dt_status dt_store_place_get(dt_store *store, const char **text, const char *run, int64_t attempt,
                             int64_t node, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t number;
    bool found;

    *text = "";
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(
        DT_SQL_FIRST(text, &found, &dt_sql_one_text, store, arena, err,
                     "SELECT place_json FROM nodes WHERE run = ?1 AND attempt = ?2 AND node = ?3",
                     DT_INT(number), DT_INT(attempt), DT_INT(node)));
out:
    return st;
}
