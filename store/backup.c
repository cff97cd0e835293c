/* backup: copies the history to another file, and a run to a new store file.
 *
 * The copy is verified before it gets its final name: SQLite's integrity check, references between tables, and the same
 * number of rows in each table as in the source at the same moment.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "store/store_int.h"

static dt_status copy_pages(sqlite3 *source, sqlite3 *target, dt_error *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(target, "main", source, "main");
    int code = SQLITE_OK;

    if (backup == NULL)
        return DT_FAIL(err, DT_ERR_IO, "cannot copy the run store: %s", sqlite3_errmsg(target));
    code = sqlite3_backup_step(backup, -1); /* a snapshot of this moment; writers continue */
    sqlite3_backup_finish(backup);
    if (code != SQLITE_DONE)
        return DT_FAIL(err, DT_ERR_IO, "cannot copy the run store: %s", sqlite3_errstr(code));
    return DT_OK;
}

/* --- check of the copy */

/* Returns the first column of the first row of a query as text; empty without a row. */
static dt_status read_one(dt_strbuf *out, sqlite3 *db, const char *sql, const char *path,
                          dt_error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

    dt_strbuf_reset(out);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL)
        dt_strbuf_add_str(out, (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    if (code == SQLITE_ROW || code == SQLITE_DONE)
        return DT_OK;
    if ((code & 0xff) == SQLITE_CORRUPT)
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "cannot copy the run store: '%s' is damaged (" DT_STORE_REMEDY ")", path);
    return DT_FAIL(err, DT_ERR_IO, "cannot copy the run store: '%s': %s", path,
                   sqlite3_errstr(code));
}

/* Lists each table with its number of rows: "attempts 3, checkpoints 4, ...". */
static dt_status count_rows(dt_strbuf *out, sqlite3 *db, const char *path, dt_error *err)
{
    dt_strbuf sql;
    dt_status st;

    dt_strbuf_init(&sql);
    DT_TRY(read_one(&sql, db,
                    "SELECT 'SELECT group_concat(n, '', '') FROM (' || group_concat("
                    "printf('SELECT %Q || count(*) AS n FROM \"%w\"', name || ' ', name),"
                    " ' UNION ALL ') || ')'"
                    " FROM (SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name)",
                    path, err));
    if (sql.length > 0)
        DT_TRY(read_one(out, db, sql.data, path, err));
out:
    dt_strbuf_release(&sql);
    return st;
}

static dt_status check_copy(sqlite3 *target, const dt_strbuf *wanted, const char *path,
                            dt_error *err)
{
    const char *found;
    dt_status st;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(read_one(&text, target, "SELECT integrity_check FROM pragma_integrity_check(1)", path,
                    err));
    found = strchr(text.data, '\n'); /* skips the line that names the database */
    if (strcmp(text.data, "ok") != 0)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "cannot copy the run store: '%s' is damaged: %s (" DT_STORE_REMEDY ")", path,
                 found != NULL ? found + 1 : text.data);
    DT_TRY(read_one(&text, target, "SELECT \"table\" FROM pragma_foreign_key_check", path, err));
    if (text.length > 0)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "cannot copy the run store: '%s' is damaged: a row of %s refers to a missing row "
                 "(" DT_STORE_REMEDY ")",
                 path, text.data);
    DT_TRY(count_rows(&text, target, path, err));
    if (strcmp(text.data, wanted->data) != 0)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "cannot copy the run store: the rows of the copy differ from '%s': %s; expected "
                 "%s (" DT_STORE_REMEDY ")",
                 path, text.data, wanted->data);
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status sync_file(const char *path, dt_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    return good ? DT_OK : DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
}

/* Copies `source`, whose path is `from`, to the empty file `to`; checks and syncs the copy,
 * which needs no other files next to it. `source` must be in a transaction, so that the rows are
 * counted and copied at the same moment. */
static dt_status copy_to(sqlite3 *source, const char *from, const char *to, dt_error *err)
{
    sqlite3 *target = NULL;
    dt_status st = DT_OK;
    dt_strbuf wanted;

    dt_strbuf_init(&wanted);
    if (sqlite3_open_v2(to, &target, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", to, sqlite3_errmsg(target));
    DT_TRY(count_rows(&wanted, source, from, err));
    DT_TRY(copy_pages(source, target, err));
    if (sqlite3_exec(target, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) != SQLITE_OK)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", to, sqlite3_errmsg(target));
    DT_TRY(check_copy(target, &wanted, from, err));
    if (sqlite3_close(target) != SQLITE_OK)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", to, sqlite3_errmsg(target));
    target = NULL;
    DT_TRY(sync_file(to, err));
out:
    sqlite3_close(target);
    dt_strbuf_release(&wanted);
    return st;
}

/* Removes the file, and the journals of SQLite next to it. */
static void remove_partial(const char *path)
{
    static const char *const endings[] = {"", "-journal", "-wal", "-shm"};
    dt_strbuf name;

    dt_strbuf_init(&name);
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        dt_strbuf_reset(&name);
        dt_strbuf_add_fmt(&name, "%s%s", path, endings[i]);
        unlink(name.data);
    }
    dt_strbuf_release(&name);
}

/* Creates a file with a unique name and mode 0600; the caller removes it. */
static dt_status make_new(dt_strbuf *path, dt_error *err)
{
    int fd = mkostemp(path->data, O_CLOEXEC);

    if (fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", path->data, strerror(errno));
    close(fd);
    return DT_OK;
}

dt_status dt_store_backup(dt_store *store, const char *path, dt_error *err)
{
    dt_sql_group group = {0};
    dt_status st = DT_OK;
    bool made = false;
    struct stat info;
    dt_strbuf partial;

    dt_strbuf_init(&partial);
    dt_strbuf_add_fmt(&partial, "%s.partial-XXXXXX", path);
    if (lstat(path, &info) == 0)
        DT_THROW(err, DT_ERR_USAGE, "'%s' already exists: give another path", path);
    DT_TRY(make_new(&partial, err));
    made = true;
    DT_TRY(dt_sql_group_begin_reading(&group, store, err));
    st = copy_to(store->db, store->path, partial.data, err);
    st = dt_sql_group_end(&group, st, err);
    if (st == DT_OK)
        st = dt_file_name(partial.data, path, false, err);
out:
    if (made)
        remove_partial(partial.data);
    dt_strbuf_release(&partial);
    return st;
}

/* move: moves a run to the new store file after the open one was removed or replaced.
 *
 * The old file is still readable through its descriptors: SQLite copies it to a file in the same folder, and the
 * rows of the run are copied from there to the store that is now at the path. Copies all columns of the old file, so
 * that a change of the schema needs no change here.
 */

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
