#include "store/store_int.h"

#include <errno.h>
#include <math.h>
#include <string.h>

dt_status dt_sql_fail(dt_store *store, int code, const char *doing, dt_error *err)
{
    int system_error = sqlite3_system_errno(store->db);

    switch (code & 0xff) {
    case SQLITE_FULL:
        return DT_FAIL(err, DT_ERR_IO,
                       "cannot %s: the disk of the run store '%s' is full (free some space; this "
                       "change was undone)",
                       doing, store->path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return DT_FAIL(err, DT_ERR_BUSY,
                       "cannot %s: another process has held the run store '%s' for %d s", doing,
                       store->path, store->patience_ms / 1000);
    case SQLITE_NOTADB:
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "cannot %s: '%s' is not a run store (" DT_STORE_REMEDY ")", doing,
                       store->path);
    case SQLITE_CORRUPT:
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "cannot %s: the run store '%s' is damaged (" DT_STORE_REMEDY ")", doing,
                       store->path);
    case SQLITE_NOMEM:
        return DT_FAIL(err, DT_ERR_NOMEM, "cannot %s: no memory", doing);
    case SQLITE_IOERR:
        if (system_error == ENOSPC || system_error == EDQUOT)
            return dt_sql_fail(store, SQLITE_FULL, doing, err);
        if (system_error == EFBIG)
            return DT_FAIL(err, DT_ERR_IO,
                           "cannot %s: the run store '%s' has reached this process's limit on file "
                           "sizes: raise it with 'ulimit -f' (this change was undone)",
                           doing, store->path);
        break;
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
        break;
    default:
        return DT_FAIL(err, DT_ERR_IO, "cannot %s: run store '%s': %s", doing, store->path,
                       sqlite3_errmsg(store->db));
    }
    return DT_FAIL(err, DT_ERR_IO, "cannot %s: run store '%s': %s%s%s", doing, store->path,
                   sqlite3_errstr(code), system_error != 0 ? ": " : "",
                   system_error != 0 ? strerror(system_error) : "");
}

dt_status dt_sql_exec(dt_store *store, const char *sql, const char *doing, dt_error *err)
{
    int code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);

    return code == SQLITE_OK ? DT_OK : dt_sql_fail(store, code, doing, err);
}

/* A DELETE may reach the points of a run by a foreign key. */
static dt_sql_use use_of(const char *sql)
{
    if (strstr(sql, "pyramid") != NULL || strncmp(sql, "DELETE", 6) == 0)
        return DT_SQL_PYRAMID;
    return strstr(sql, "metrics") != NULL ? DT_SQL_POINTS : DT_SQL_NO_POINTS;
}

static dt_status statement_find(sqlite3_stmt **out, dt_sql_use *use, dt_store *store,
                                const char *sql, dt_error *err)
{
    int code;

    for (int i = 0; i < store->statement_count; i++) {
        if (store->statements[i].sql == sql) {
            *out = store->statements[i].statement;
            *use = store->statements[i].use;
            return DT_OK;
        }
    }
    DT_ASSERT(store->statement_count < DT_STORE_STATEMENTS_MAX);
    code = sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
    if (code != SQLITE_OK)
        return dt_sql_fail(store, code, "use the run store", err);
    *use = use_of(sql);
    store->statements[store->statement_count].sql = sql;
    store->statements[store->statement_count].use = *use;
    store->statements[store->statement_count++].statement = *out;
    return DT_OK;
}

static int bind(sqlite3_stmt *statement, int at, const dt_sql_value *value)
{
    switch (value->type) {
    case DT_SQL_TEXT:
        return sqlite3_bind_text(statement, at, value->text, -1, SQLITE_STATIC);
    case DT_SQL_INT:
        return sqlite3_bind_int64(statement, at, value->integer);
    default:
        break;
    }
    return sqlite3_bind_double(statement, at, value->real);
}

dt_status dt_sql_open(dt_sql_rows *rows, dt_store *store, dt_arena *arena, const char *sql,
                      const dt_sql_value *values, size_t count, dt_error *err)
{
    sqlite3_stmt *statement;
    dt_sql_use use = DT_SQL_NO_POINTS;
    dt_status st;

    memset(rows, 0, sizeof(*rows));
    st = statement_find(&statement, &use, store, sql, err);
    if (st == DT_OK && use != DT_SQL_NO_POINTS && store->gatherer != NULL)
        st = store->gatherer->write(store, use == DT_SQL_PYRAMID, err);
    if (st != DT_OK)
        return st;
    rows->statement = statement;
    DT_ASSERT(!sqlite3_stmt_busy(rows->statement));
    rows->store = store;
    rows->arena = arena;
    for (size_t i = 0; i < count; i++) {
        int code = bind(rows->statement, (int)i + 1, &values[i]);
        if (code != SQLITE_OK) {
            dt_sql_close(rows);
            return dt_sql_fail(store, code, "use the run store", err);
        }
    }
    return DT_OK;
}

dt_status dt_sql_next(dt_sql_rows *rows, bool *more, dt_error *err)
{
    int code;

    *more = false;
    code = sqlite3_step(rows->statement);
    rows->column = 0;
    *more = code == SQLITE_ROW;
    if (code == SQLITE_ROW || code == SQLITE_DONE)
        return DT_OK;
    return dt_sql_fail(
        rows->store, code,
        sqlite3_stmt_readonly(rows->statement) ? "read the run store" : "write the run store", err);
}

void dt_sql_close(dt_sql_rows *rows)
{
    if (rows->statement == NULL)
        return;
    sqlite3_reset(
        rows->statement); /* repeats the error of the last step, which was already reported */
    sqlite3_clear_bindings(rows->statement);
    rows->statement = NULL;
}

dt_status dt_sql_run(dt_store *store, const char *sql, const dt_sql_value *values, size_t count,
                     dt_error *err)
{
    dt_sql_rows rows;
    bool more;
    dt_status st = dt_sql_open(&rows, store, NULL, sql, values, count, err);

    if (st == DT_OK)
        st = dt_sql_next(&rows, &more, err);
    dt_sql_close(&rows);
    return st;
}

const char *dt_sql_text(dt_sql_rows *rows)
{
    const char *text = (const char *)sqlite3_column_text(rows->statement, rows->column);
    size_t length = (size_t)sqlite3_column_bytes(rows->statement, rows->column);

    rows->column++;
    return text != NULL ? dt_arena_strndup(rows->arena, text, length) : "";
}

int64_t dt_sql_int_or(dt_sql_rows *rows, int64_t null_value)
{
    int column = rows->column++;

    if (sqlite3_column_type(rows->statement, column) == SQLITE_NULL)
        return null_value;
    return sqlite3_column_int64(rows->statement, column);
}

int64_t dt_sql_int(dt_sql_rows *rows)
{
    return dt_sql_int_or(rows, 0);
}

double dt_sql_real(dt_sql_rows *rows)
{
    int column = rows->column++;

    if (sqlite3_column_type(rows->statement, column) == SQLITE_NULL)
        return NAN;
    return sqlite3_column_double(rows->statement, column);
}

void dt_sql_after_end(dt_store *store)
{
    store->points_lost = false;
    if (store->gatherer != NULL)
        store->gatherer->discard(store);
}

dt_status dt_sql_commit(dt_store *store, dt_error *err)
{
    dt_status st = DT_OK;

    if (store->points_lost)
        DT_THROW(err, DT_ERR_IO,
                 "cannot write the run store: an earlier write of this transaction failed");
    if (store->gatherer != NULL)
        DT_TRY(store->gatherer->write(store, true, err));
    DT_TRY(dt_sql_exec(store, "COMMIT", "write the run store", err));
out:
    return st;
}

void dt_sql_back(dt_store *store)
{
    /* SQLite rolls back by itself after some errors, for example when the disk is full. */
    if (sqlite3_get_autocommit(store->db) == 0)
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    store->back_owed = sqlite3_get_autocommit(store->db) == 0;
}

static dt_status group_begin(dt_sql_group *group, dt_store *store, const char *sql,
                             const char *doing, dt_error *err)
{
    dt_status st;

    group->store = store;
    if (store->back_owed)
        dt_sql_back(store);
    if (store->back_owed)
        return DT_FAIL(err, DT_ERR_NOMEM, "cannot %s: no memory", doing);
    group->nested = sqlite3_get_autocommit(store->db) == 0;
    if (!group->nested)
        dt_sql_after_end(store); /* those of a transaction that SQLite has rolled back */
    st = dt_sql_exec(store, group->nested ? "SAVEPOINT grouped" : sql, doing, err);
    group->open = st == DT_OK;
    group->point_changes = store->point_changes;
    return st;
}

dt_status dt_sql_group_begin(dt_sql_group *group, dt_store *store, dt_error *err)
{
    return group_begin(group, store, "BEGIN IMMEDIATE", "write the run store", err);
}

dt_status dt_sql_group_begin_reading(dt_sql_group *group, dt_store *store, dt_error *err)
{
    return group_begin(group, store, "BEGIN", "read the run store", err);
}

dt_status dt_sql_group_end(dt_sql_group *group, dt_status st, dt_error *err)
{
    dt_store *store = group->store;

    if (!group->open)
        return st;
    group->open = false;
    if (st == DT_OK && !group->nested)
        st = dt_sql_commit(store, err);
    else if (st == DT_OK)
        st = dt_sql_exec(store, "RELEASE grouped", "write the run store", err);
    if (!group->nested)
        dt_sql_after_end(store);
    if (st == DT_OK)
        return st;
    /* Collected points are not divided by group: the outer transaction fails too if this one has changed them. */
    store->points_lost |= group->nested && group->point_changes != store->point_changes;
    /* SQLite rolls back by itself after some errors: then nothing is left to end. */
    if (!group->nested)
        dt_sql_back(store);
    else if (sqlite3_get_autocommit(store->db) == 0)
        sqlite3_exec(store->db, "ROLLBACK TO grouped; RELEASE grouped", NULL, NULL, NULL);
    return st;
}
