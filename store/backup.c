/* backup: copies the history to another file while other processes use it.
 *
 * The copy is verified before it gets its final name: SQLite's integrity check, references between tables, and the same
 * number of rows in each table as in the source at the same moment.
 */
#include "store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"

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
