/* query: runs one SELECT of a user on the views of store/sql_views.c.
 *
 * Opens a read-only connection for this query. The views are temporary: they exist on this connection and are never
 * written to the file. An authorizer allows only reading tables and calling functions: no PRAGMA, no ATTACH, no
 * extension. The query has a time limit.
 */
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "store/sql_views.h"
#include "store/store_int.h"

enum { COLUMNS_MOST = 200, STEPS_BETWEEN = 10000, LENGTH_MOST = 64 << 20 };

static int authorize(void *context, int action, const char *first, const char *second,
                     const char *schema, const char *inner)
{
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return strcmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    default:
        return SQLITE_DENY;
    }
}

static int is_late(void *deadline)
{
    return dt_clock_monotonic_seconds() > *(const double *)deadline;
}

/* Returns the present path of the checkpoint PATH of RUN, the arguments of the function; NULL if
 * one of them is NULL. */
static const char *present_path(sqlite3_context *context, sqlite3_value **values, dt_arena *arena)
{
    const char *path = (const char *)sqlite3_value_text(values[0]);
    const char *run = (const char *)sqlite3_value_text(values[1]);

    if (path == NULL || run == NULL)
        return NULL;
    return dt_checkpoint_path(sqlite3_user_data(context), path, run, arena);
}

static void checkpoint_path(sqlite3_context *context, int count, sqlite3_value **values)
{
    dt_arena arena;

    dt_arena_init(&arena, 512);
    sqlite3_result_text(context, present_path(context, values, &arena), -1, SQLITE_TRANSIENT);
    dt_arena_release(&arena);
}

/* SQL function: returns 1 if the directory of the checkpoint exists, else 0. */
static void checkpoint_kept(sqlite3_context *context, int count, sqlite3_value **values)
{
    const char *path;
    dt_arena arena;

    dt_arena_init(&arena, 512);
    path = present_path(context, values, &arena);
    if (path != NULL)
        sqlite3_result_int(context, dt_file_exists(path));
    dt_arena_release(&arena);
}

static int make_views(sqlite3 *db, dt_store *store)
{
    int code = sqlite3_create_function(db, "checkpoint_path", 2, SQLITE_UTF8, store,
                                       checkpoint_path, NULL, NULL);
    dt_strbuf sql;

    dt_strbuf_init(&sql);
    dt_sql_views_create(&sql);
    if (code == SQLITE_OK)
        code = sqlite3_create_function(db, "checkpoint_kept", 2, SQLITE_UTF8, store,
                                       checkpoint_kept, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, sql.data, NULL, NULL, NULL);
    dt_strbuf_release(&sql);
    return code;
}

static dt_status open_reading(sqlite3 **out, dt_store *store, dt_error *err)
{
    int code = sqlite3_open_v2(store->path, out, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);

    if (code == SQLITE_OK) {
        dt_sql_harden(*out);
        sqlite3_busy_timeout(*out, store->patience_ms);
        code = make_views(*out, store);
    }
    if (code != SQLITE_OK)
        return DT_FAIL(err, DT_ERR_IO, "cannot open the run store to read: %s",
                       *out != NULL ? sqlite3_errmsg(*out) : "no memory");
    sqlite3_limit(*out, SQLITE_LIMIT_LENGTH, LENGTH_MOST);
    sqlite3_limit(*out, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_set_authorizer(*out, authorize, NULL);
    return DT_OK;
}

static dt_status prepare(sqlite3_stmt **out, sqlite3 *db, const char *sql, dt_error *err)
{
    const char *tail = "";
    int code = sqlite3_prepare_v2(db, sql, -1, out, &tail);

    if (code == SQLITE_AUTH)
        return DT_FAIL(err, DT_ERR_USAGE, "cannot run the statement: only SELECT is supported (%s)",
                       sqlite3_errmsg(db));
    if (code != SQLITE_OK)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "cannot run the SELECT: %s ('dtrun sql --schema' lists views and columns)",
                       sqlite3_errmsg(db));
    if (*out == NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "cannot run the SELECT: it is empty");
    if (tail[strspn(tail, " \t\r\n;")] != '\0')
        return DT_FAIL(err, DT_ERR_USAGE,
                       "cannot run '%.40s': only one statement at a time is supported", tail);
    if (!sqlite3_stmt_readonly(*out))
        return DT_FAIL(err, DT_ERR_USAGE, "cannot run the statement: only SELECT is supported");
    if (sqlite3_column_count(*out) > COLUMNS_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "cannot run the SELECT: it has more than %d columns",
                       COLUMNS_MOST);
    return DT_OK;
}

static dt_query_value read_value(sqlite3_stmt *statement, int column)
{
    dt_query_value out = {.kind = DT_QUERY_NULL};

    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
        out.kind = DT_QUERY_INT;
        out.integer = sqlite3_column_int64(statement, column);
        break;
    case SQLITE_FLOAT:
        out.kind = DT_QUERY_REAL;
        out.real = sqlite3_column_double(statement, column);
        break;
    case SQLITE_TEXT:
        out.kind = DT_QUERY_TEXT;
        out.text = (const char *)sqlite3_column_text(statement, column);
        break;
    default: /* the views have no blobs */
        break;
    }
    return out;
}

dt_status dt_store_query(dt_store *store, const char *sql, double seconds, dt_query_take take,
                         void *context, dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + seconds;
    const char *names[COLUMNS_MOST];
    dt_query_value values[COLUMNS_MOST];
    sqlite3_stmt *statement = NULL;
    sqlite3 *db = NULL;
    dt_status st = DT_OK;
    int code, count;

    DT_TRY(open_reading(&db, store, err));
    sqlite3_progress_handler(db, STEPS_BETWEEN, is_late, &deadline);
    DT_TRY(prepare(&statement, db, sql, err));
    count = sqlite3_column_count(statement);
    for (int i = 0; i < count; i++)
        names[i] = sqlite3_column_name(statement, i);
    take(context, names, NULL, count);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < count; i++)
            values[i] = read_value(statement, i);
        take(context, names, values, count);
    }
    if (code == SQLITE_INTERRUPT)
        DT_THROW(err, DT_ERR_TIMEOUT, "no answer within %g seconds", seconds);
    if (code != SQLITE_DONE)
        DT_THROW(err, DT_ERR_USAGE, "%s", sqlite3_errmsg(db));
out:
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return st;
}
