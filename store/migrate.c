/* migrate: brings a file to the newest schema.
 *
 * A migration is store/schema/NNNN_*.sql, never changed once released. To add one: write the
 * file, embed it in store/CMakeLists.txt, put its line below; `after`, where there is one, fills
 * what SQL alone cannot. All run in one transaction
 * together with the new user_version, once the file as it was is copied (backup.c); of several processes that open
 * a store at once, one migrates and the others find it done.
 */
#include "store/store_int.h"

#include "base/banned.h"

extern const char dt_embedded_schema_0001[];
extern const char dt_embedded_schema_0002[];
extern const char dt_embedded_schema_0003[];
extern const char dt_embedded_schema_0004[];
extern const char dt_embedded_schema_0005[];
extern const char dt_embedded_schema_0006[];
extern const char dt_embedded_schema_0007[];
extern const char dt_embedded_pyramid_trigger[];

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

static dt_status build_pyramid(dt_store *store, dt_error *err)
{
    int64_t active;
    dt_status st = DT_OK;

    DT_TRY(dt_pyramid_build(store, NULL, err));
    DT_TRY(
        number_read(store, &active, "SELECT count(*) FROM attempts WHERE ended_ms IS NULL", err));
    if (active > 0)
        DT_TRY(dt_sql_exec(store, dt_embedded_pyramid_trigger, "migrate the run store", err));
out:
    return st;
}

static const struct {
    const char *sql;
    dt_status (*after)(dt_store *store, dt_error *err); /* NULL: nothing */
} migrations[] = {
    {dt_embedded_schema_0001, NULL}, {dt_embedded_schema_0002, NULL},
    {dt_embedded_schema_0003, NULL}, {dt_embedded_schema_0004, NULL},
    {dt_embedded_schema_0005, NULL}, {dt_embedded_schema_0006, build_pyramid},
    {dt_embedded_schema_0007, NULL},
};

const int64_t dt_store_version = sizeof(migrations) / sizeof(migrations[0]);

/* The version of a file that is ours, 0 of an empty one; DT_ERR_CORRUPT for any other. */
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
    if (*version < 1) /* it is written together with the application's */
        DT_THROW(err, DT_ERR_CORRUPT,
                 "cannot open the run store: '%s' is damaged, its version is %lld (" DT_STORE_REMEDY
                 ")",
                 store->path, (long long)*version);
    if (*version > dt_store_version)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "cannot open the run store '%s': a newer dtrun wrote it (version %lld, this "
                 "program knows up to %lld); use that dtrun, or set XDG_STATE_HOME to another "
                 "folder",
                 store->path, (long long)*version, (long long)dt_store_version);
out:
    return st;
}

dt_status dt_store_check(dt_store *store, dt_error *err)
{
    dt_sql_group group = {0};
    int64_t version;
    dt_status st = DT_OK;

    /* one view of the file for the three questions */
    DT_TRY(dt_sql_group_begin_reading(&group, store, err));
    DT_TRY(version_read(store, &version, err));
out:
    return dt_sql_group_end(&group, st, err);
}

dt_status dt_store_migrate(dt_store *store, dt_error *err)
{
    dt_sql_group group = {0};
    dt_status st = DT_OK;
    int64_t version;

    DT_TRY(number_read(store, &version, "PRAGMA user_version", err));
    if (version == dt_store_version)
        return DT_OK; /* by far the most frequent, and it needs no lock */
    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(version_read(store, &version, err)); /* again: somebody may have been faster */
    if (version > 0 && version < dt_store_version)
        DT_TRY(dt_store_backup_version(store, version, err));
    for (; version < dt_store_version; version++) {
        char mark[96];

        DT_TRY(dt_sql_exec(store, migrations[version].sql, "migrate the run store", err));
        if (migrations[version].after != NULL)
            DT_TRY(migrations[version].after(store, err));
        sqlite3_snprintf(sizeof(mark), mark,
                         "PRAGMA user_version = %lld; PRAGMA application_id = %d",
                         (long long)version + 1, DT_STORE_APPLICATION_ID);
        DT_TRY(dt_sql_exec(store, mark, "migrate the run store", err));
    }
out:
    return dt_sql_group_end(&group, st, err);
}
