/* schema: creates the tables of an empty store, and refuses a file that it cannot read.
 *
 * store/schema.sql is version 1, the format of release 0.1.0. Files of any other version are refused: no other
 * version was released.
 */
#include "store/store_int.h"

#include "base/banned.h"

extern const char dt_embedded_schema[];

static dt_status number_read(dt_store *store, int64_t *out, const char *sql, dt_error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);

    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *out = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? DT_OK : dt_sql_fail(store, code, "open the run store", err);
}

/* Returns DT_STORE_VERSION in *version, or 0 if the file is empty; fails for other files. */
static dt_status version_read(dt_store *store, int64_t *version, dt_error *err)
{
    int64_t application, tables;
    dt_status st = DT_OK;

    DT_TRY(number_read(store, version, "PRAGMA user_version", err));
    DT_TRY(number_read(store, &application, "PRAGMA application_id", err));
    DT_TRY(number_read(store, &tables, "SELECT count(*) FROM sqlite_schema", err));
    if (application == 0 && tables == 0 && *version == 0)
        return DT_OK;
    if (application != DT_STORE_APPLICATION_ID)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "cannot open the run store: '%s' belongs to another program (move it away, or "
                 "set XDG_STATE_HOME to another folder)",
                 store->path);
    if (*version < 1) /* both numbers are written together */
        DT_THROW(err, DT_ERR_CORRUPT,
                 "cannot open the run store: '%s' is damaged, its version is %lld (" DT_STORE_REMEDY
                 ")",
                 store->path, (long long)*version);
    if (*version != DT_STORE_VERSION)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "cannot open the run store '%s': another dtrun wrote it (version %lld, this "
                 "program reads version %d); use that dtrun, or set XDG_STATE_HOME to another "
                 "folder",
                 store->path, (long long)*version, DT_STORE_VERSION);
out:
    return st;
}

dt_status dt_store_check(dt_store *store, int64_t *version, dt_error *err)
{
    dt_sql_group group = {0};
    dt_status st = DT_OK;

    /* one snapshot for all queries */
    DT_TRY(dt_sql_group_begin_reading(&group, store, err));
    DT_TRY(version_read(store, version, err));
out:
    return dt_sql_group_end(&group, st, err);
}

dt_status dt_store_create(dt_store *store, dt_error *err)
{
    dt_sql_group group = {0};
    dt_status st = DT_OK;
    int64_t version;
    char mark[96];

    DT_TRY(dt_sql_group_begin(&group, store, err));
    /* Checked again in the transaction: another process may have created the tables. */
    DT_TRY(version_read(store, &version, err));
    if (version == 0) {
        DT_TRY(dt_sql_exec(store, dt_embedded_schema, "create the run store", err));
        sqlite3_snprintf(sizeof(mark), mark, "PRAGMA user_version = %d; PRAGMA application_id = %d",
                         DT_STORE_VERSION, DT_STORE_APPLICATION_ID);
        DT_TRY(dt_sql_exec(store, mark, "create the run store", err));
    }
out:
    return dt_sql_group_end(&group, st, err);
}
