/* move: moves a run to the new store file after the open one was removed or replaced.
 *
 * The old file is still readable through its descriptors: SQLite copies it to a file in the same folder, and the
 * rows of the run are copied from there to the store that is now at the path. Copies all columns of the old file, so
 * that a change of the schema needs no change here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "store/store_int.h"

bool dt_store_is_current(const dt_store *store)
{
    struct stat info;

    return stat(store->path, &info) == 0 && info.st_dev == store->device &&
           info.st_ino == store->inode;
}

bool dt_store_renew(dt_store *store, const char *run)
{
    dt_store *fresh = NULL, old = *store;
    struct stat info;
    int64_t number;

    if (dt_store_is_current(store) || stat(store->path, &info) != 0)
        return false;
    if (dt_store_open_to_read(&fresh, store->path, NULL) != DT_OK ||
        dt_store_run_number(fresh, &number, run, NULL) != DT_OK) {
        dt_store_close(fresh);
        return false;
    }
    *store = *fresh;
    *fresh = old;
    dt_store_close(fresh);
    return true;
}

/* Lists the columns of a table of the old file as "a, b, c", without `without` and "run". */
static dt_status columns_of(dt_strbuf *out, dt_store *store, const char *table, const char *without,
                            dt_error *err)
{
    sqlite3_stmt *statement = NULL;
    char sql[128];
    int code;

    dt_strbuf_reset(out);
    sqlite3_snprintf(sizeof(sql), sql, "PRAGMA old.table_info(%s)", table);
    code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        const char *name;

        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
            break;
        name = (const char *)sqlite3_column_text(statement, 1);
        if (name != NULL && strcmp(name, without) != 0 && strcmp(name, "run") != 0)
            dt_strbuf_add_fmt(out, "%s%s", out->length > 0 ? ", " : "", name);
    }
    sqlite3_finalize(statement);
    return code == SQLITE_DONE ? DT_OK : dt_sql_fail(store, code, "copy a run", err);
}

/* Copies the rows of a run from the attached old file. Numbers of runs, events and series are new. */
static dt_status copy_rows(dt_store *store, const char *run, dt_error *err)
{
    static const struct {
        const char *table, *without;
    } tables[] = {{"attempts", ""},    {"nodes", ""},       {"ranks", ""},
                  {"events", "event"}, {"checkpoints", ""}, {"series", "series"}};
    dt_strbuf columns;
    dt_status st = DT_OK;
    char *sql = NULL;

    dt_strbuf_init(&columns);
    DT_TRY(columns_of(&columns, store, "runs", "", err));
    sql = sqlite3_mprintf("INSERT INTO main.runs (%s) SELECT %s FROM old.runs WHERE id = %Q",
                          columns.data, columns.data, run);
    DT_TRY(dt_sql_exec(store, sql, "copy a run", err));
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        DT_TRY(columns_of(&columns, store, tables[i].table, tables[i].without, err));
        sqlite3_free(sql);
        sql =
            sqlite3_mprintf("INSERT INTO main.%s (run, %s) SELECT (SELECT run FROM main.runs"
                            " WHERE id = %Q), %s FROM old.%s WHERE run ="
                            " (SELECT run FROM old.runs WHERE id = %Q)",
                            tables[i].table, columns.data, run, columns.data, tables[i].table, run);
        DT_TRY(dt_sql_exec(store, sql, "copy a run", err));
    }
    sqlite3_free(sql);
    sql = sqlite3_mprintf(
        "INSERT INTO main.metrics (series, step, attempt, value, time_ms)"
        " SELECT n.series, m.step, m.attempt, m.value, m.time_ms FROM old.metrics m"
        " JOIN old.series o ON o.series = m.series JOIN main.series n ON n.name = o.name"
        " WHERE o.run = (SELECT run FROM old.runs WHERE id = %Q)"
        " AND n.run = (SELECT run FROM main.runs WHERE id = %Q)",
        run, run);
    DT_TRY(dt_sql_exec(store, sql, "copy a run", err));
    DT_TRY(dt_pyramid_build(store, run, err));
out:
    sqlite3_free(sql);
    dt_strbuf_release(&columns);
    return st;
}

static dt_status has_run(bool *has, dt_store *store, const char *run, dt_error *err)
{
    int64_t number;
    dt_error problem = DT_ERROR_INIT;
    dt_status st = dt_store_run_number(store, &number, run, &problem);

    *has = st == DT_OK;
    return st == DT_OK || st == DT_ERR_NOT_FOUND ? DT_OK : DT_FAIL(err, st, "%s", problem.message);
}

dt_status dt_store_move_run(dt_store *old, const char *run, dt_error *err)
{
    dt_sql_group group = {0};
    dt_store *store = NULL;
    char *sql = NULL, *copy = NULL;
    bool has, attached = false;
    dt_status st = DT_OK;

    copy = sqlite3_mprintf("%s.copy-%d", old->path, (int)getpid());
    if (copy == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    unlink(copy);
    DT_TRY(dt_store_open(&store, old->path, err)); /* created if missing */
    DT_TRY(has_run(&has, store, run, err));
    if (has)
        goto out; /* the file has an older copy of the run: missing rows come from the agents' journals */
    sql = sqlite3_mprintf("VACUUM INTO %Q", copy);
    DT_TRY(dt_sql_exec(old, sql, "copy a run", err));
    sqlite3_free(sql);
    sql = sqlite3_mprintf("ATTACH %Q AS old", copy);
    DT_TRY(dt_sql_exec(store, sql, "copy a run", err));
    attached = true;
    DT_TRY(dt_sql_group_begin(&group, store, err));
    st = copy_rows(store, run, err);
    st = dt_sql_group_end(&group, st, err);
out:
    if (attached)
        sqlite3_exec(store->db, "DETACH old", NULL, NULL, NULL);
    dt_store_close(store);
    if (copy != NULL)
        unlink(copy);
    sqlite3_free(copy);
    sqlite3_free(sql);
    return st;
}
