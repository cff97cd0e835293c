/* label: changes name, tags, note and group of a run, which do not affect training. */
#include "store/store_int.h"

#include "base/banned.h"

dt_status dt_store_run_label(dt_store *store, const char *run, const dt_labels *labels,
                             dt_error *err)
{
    dt_sql_group group = {0};
    dt_status st = DT_OK;
    int64_t number;

    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_RUN(store, err,
                      "UPDATE runs SET name = coalesce(?2, name), tags = coalesce(?3, tags),"
                      " note = coalesce(?4, note), run_group = coalesce(?5, run_group)"
                      " WHERE run = ?1",
                      DT_INT(number), DT_TEXT(labels->name), DT_TEXT(labels->tags),
                      DT_TEXT(labels->note), DT_TEXT(labels->group)));
out:
    return dt_sql_group_end(&group, st, err);
}
