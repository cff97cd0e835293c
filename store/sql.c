/* sql: prepares and runs statements, and binds and reads rows as structs by the description of their
 * columns (DT_SQL_ROW). */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/process.h"
#include "store/store_int.h"

/* --- states of runs, as they are stored, and elapsed times */

static const char *const state_names[DT_RUN_STATE_COUNT] = {
    [DT_RUN_WAITING] = "waiting",   [DT_RUN_QUEUED] = "queued",   [DT_RUN_PREPARING] = "preparing",
    [DT_RUN_STARTING] = "starting", [DT_RUN_RUNNING] = "running", [DT_RUN_STOPPING] = "stopping",
    [DT_RUN_FINISHED] = "finished", [DT_RUN_FAILED] = "failed",   [DT_RUN_STOPPED] = "stopped",
};

const char *dt_run_state_name(dt_run_state state)
{
    DT_ASSERT((int)state >= 0 && state < DT_RUN_STATE_COUNT);
    return state_names[state];
}

bool dt_run_state_parse(dt_run_state *out, const char *name)
{
    for (int i = 0; i < DT_RUN_STATE_COUNT; i++) {
        if (strcmp(state_names[i], name) == 0) {
            *out = (dt_run_state)i;
            return true;
        }
    }
    return false;
}

bool dt_run_state_is_terminal(dt_run_state state)
{
    return state == DT_RUN_FINISHED || state == DT_RUN_FAILED || state == DT_RUN_STOPPED;
}

double dt_run_elapsed_seconds(const dt_run *run, int64_t now_ms)
{
    int64_t elapsed_ms = run->ended_attempts_ms, open_ms = now_ms - run->started_ms;
    char boot[DT_BOOT_ID_SIZE];

    if (run->started_ms != 0 && !dt_run_state_is_terminal(run->state)) {
        if (run->boot_id[0] != '\0' && strcmp(dt_boot_id(boot), run->boot_id) == 0)
            open_ms = dt_boot_ms() - run->started_boot_ms;
        elapsed_ms += open_ms > 0 ? open_ms : 0;
    } else if (run->started_ms == 0 && elapsed_ms == 0) {
        return NAN;
    }
    return (double)elapsed_ms / 1000;
}

/* --- statements, transactions, errors */

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

/* NULL is "" */
static const char *sql_text(dt_sql_rows *rows)
{
    const char *text = (const char *)sqlite3_column_text(rows->statement, rows->column);
    size_t length = (size_t)sqlite3_column_bytes(rows->statement, rows->column);

    rows->column++;
    return text != NULL ? dt_arena_strndup(rows->arena, text, length) : "";
}

static int64_t sql_int_or(dt_sql_rows *rows, int64_t null_value)
{
    int column = rows->column++;

    if (sqlite3_column_type(rows->statement, column) == SQLITE_NULL)
        return null_value;
    return sqlite3_column_int64(rows->statement, column);
}

int64_t dt_sql_int(dt_sql_rows *rows)
{
    return sql_int_or(rows, 0);
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

/* --- rows as structs */

enum { VALUES_MOST = 16 };

/* The rows of queries with one column. */
const dt_sql_row dt_sql_one_int = {&(const dt_sql_member){DT_SQL_INT, 0}, 1, sizeof(int64_t)};
const dt_sql_row dt_sql_one_text = {&(const dt_sql_member){DT_SQL_TEXT, 0}, 1, sizeof(char *)};

static dt_sql_value value_of(const dt_sql_member *of, const void *item)
{
    const void *member = (const char *)item + of->offset;
    const char *text;

    switch (of->type) {
    case DT_SQL_TEXT:
        text = *(const char *const *)member;
        return (dt_sql_value)DT_TEXT(text != NULL ? text : "");
    case DT_SQL_INT:
        return (dt_sql_value)DT_INT(*(const int64_t *)member);
    case DT_SQL_INT32:
        return (dt_sql_value)DT_INT(*(const int *)member);
    case DT_SQL_REAL:
        return (dt_sql_value)DT_REAL(*(const double *)member);
    case DT_SQL_BOOL:
        return (dt_sql_value)DT_INT(*(const bool *)member);
    case DT_SQL_STATE:
        break;
    }
    return (dt_sql_value)DT_TEXT(dt_run_state_name(*(const dt_run_state *)member));
}

dt_status dt_sql_put(dt_store *store, const char *sql, const dt_sql_row *row, const void *item,
                     const char *run, const dt_sql_value *more, size_t more_count, dt_error *err)
{
    dt_sql_value values[VALUES_MOST] = {DT_INT(0)};
    size_t count = row->count;
    dt_status st = DT_OK;

    DT_ASSERT(count + 1 + more_count <= VALUES_MOST);
    for (size_t i = 0; i < count; i++)
        values[i] = value_of(&row->members[i], item);
    values[count] = (dt_sql_value)DT_INT(0);
    DT_TRY(dt_store_run_number(store, &values[count++].integer, run, err));
    for (size_t i = 0; i < more_count; i++)
        values[count++] = more[i];
    DT_TRY(dt_sql_run(store, sql, values, count, err));
out:
    return st;
}

dt_status dt_sql_read(void *item, dt_sql_rows *rows, const dt_sql_row *row, dt_error *err)
{
    for (size_t i = 0; i < row->count; i++) {
        void *member = (char *)item + row->members[i].offset;
        const char *name;

        switch (row->members[i].type) {
        case DT_SQL_TEXT:
            *(const char **)member = sql_text(rows);
            break;
        case DT_SQL_INT:
            *(int64_t *)member = sql_int_or(rows, 0);
            break;
        case DT_SQL_INT32:
            *(int *)member = (int)sql_int_or(rows, -1);
            break;
        case DT_SQL_REAL:
            *(double *)member = dt_sql_real(rows);
            break;
        case DT_SQL_BOOL:
            *(bool *)member = dt_sql_int(rows) != 0;
            break;
        case DT_SQL_STATE:
            name = sql_text(rows);
            if (!dt_run_state_parse(member, name))
                return DT_FAIL(err, DT_ERR_CORRUPT,
                               "the run store '%s' is damaged: unknown state '%s'",
                               rows->store->path, name);
        }
    }
    return DT_OK;
}

dt_status dt_sql_first(void *item, bool *found, const dt_sql_row *row, dt_store *store,
                       dt_arena *arena, const char *sql, const dt_sql_value *values, size_t count,
                       dt_error *err)
{
    dt_sql_rows rows = {0};
    dt_status st = DT_OK;

    *found = false;
    DT_TRY(dt_sql_open(&rows, store, arena, sql, values, count, err));
    DT_TRY(dt_sql_next(&rows, found, err));
    if (*found)
        DT_TRY(dt_sql_read(item, &rows, row, err));
out:
    dt_sql_close(&rows);
    return st;
}

dt_status dt_sql_list(void *out, int64_t *count, const dt_sql_row *row, dt_store *store,
                      dt_arena *arena, const char *sql, const dt_sql_value *values,
                      size_t values_count, dt_error *err)
{
    int64_t filled = 0, capacity = 0;
    dt_sql_rows rows = {0};
    dt_status st = DT_OK;
    char *items = NULL;
    bool more;

    *count = 0;
    DT_TRY(dt_sql_open(&rows, store, arena, sql, values, values_count, err));
    for (;;) {
        DT_TRY(dt_sql_next(&rows, &more, err));
        if (!more)
            break;
        items = dt_arena_array_room(arena, items, filled + 1, &capacity, row->bytes);
        DT_TRY(dt_sql_read(items + (size_t)filled * row->bytes, &rows, row, err));
        filled++;
    }
    *count = filled;
out:
    if (st != DT_OK)
        items = NULL;
    memcpy(out, &items, sizeof(items)); /* a pointer of another type */
    dt_sql_close(&rows);
    return st;
}

dt_status dt_store_run_number(dt_store *store, int64_t *number, const char *id, dt_error *err)
{
    dt_status st = DT_OK;
    bool found;

    DT_TRY(DT_SQL_FIRST(number, &found, &dt_sql_one_int, store, NULL, err,
                        "SELECT run FROM runs WHERE id = ?1", DT_TEXT(id)));
    if (!found)
        DT_THROW(err, DT_ERR_NOT_FOUND, "no run has the id '%s'", id);
out:
    return st;
}

dt_status dt_sql_list_of_run(void *out, int64_t *count, const dt_sql_row *row, dt_store *store,
                             const char *id, dt_arena *arena, const char *sql,
                             const dt_sql_value *more, size_t more_count, dt_error *err)
{
    dt_sql_value values[VALUES_MOST] = {DT_INT(0)};
    dt_status st = dt_store_run_number(store, &values[0].integer, id, err);

    for (size_t i = 0; i < more_count; i++)
        values[i + 1] = more[i];
    if (st == DT_OK)
        return dt_sql_list(out, count, row, store, arena, sql, values, more_count + 1, err);
    memcpy(out, &(void *){NULL}, sizeof(void *));
    *count = 0;
    return st;
}
