/* remove: deletes a run from the store. */
#include "store/store_int.h"

#include "base/banned.h"

dt_status dt_store_run_remove(dt_store *store, const char *run, dt_error *err)
{
    dt_sql_group group = {0};
    dt_status st = DT_OK;
    int64_t number;

    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_RUN(store, err, "DELETE FROM runs WHERE run = ?1", DT_INT(number)));
out:
    return dt_sql_group_end(&group, st, err);
}
