#include "store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/strbuf.h"

/* Switches the file to WAL. Several processes may do this with a new store at once: in all but
 * one the statement fails at once, without the busy handler, and is retried. */
static dt_status wal_enable(dt_store *store, dt_error *err)
{
    double give_up = dt_clock_monotonic_seconds() + DT_STORE_BUSY_TIMEOUT_MS / 1000.0;

    for (;;) {
        int code = sqlite3_exec(store->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);

        if (code == SQLITE_OK)
            return DT_OK;
        if ((code & 0xff) != SQLITE_BUSY || dt_clock_monotonic_seconds() > give_up)
            return dt_sql_fail(store, code, "open the run store", err);
        dt_clock_sleep_seconds(0.01);
    }
}

static dt_status configure(dt_store *store, dt_error *err)
{
    dt_status st = DT_OK;

    sqlite3_extended_result_codes(store->db, 1);
    dt_store_set_patience(store, DT_STORE_BUSY_TIMEOUT_MS);
    dt_sql_harden(store->db);
    DT_TRY(dt_sql_exec(store,
                       "PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL;"
                       "PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON",
                       "open the run store", err));
out:
    return st;
}

dt_status dt_store_open(dt_store **out, const char *path, dt_error *err)
{
    int64_t version;
    dt_status st = DT_OK;
    dt_store *store = NULL;
    struct stat info;
    dt_arena arena;
    int code;

    *out = NULL;
    dt_arena_init(&arena, 0);
    if (path == NULL) {
        const char *folder;

        DT_TRY(dt_dir_make(&folder, DT_DIR_STATE, &arena, err));
        path = dt_arena_printf(&arena, "%s/store.db", folder);
    }
    DT_TRY(dt_store_file_prepare(path, err));
    store = dt_calloc(1, sizeof(*store));
    store->path = dt_strdup(path);
    code = sqlite3_open_v2(path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (store->db == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "cannot open the run store: no memory");
    if (code != SQLITE_OK)
        DT_TRY(dt_sql_fail(store, code, "open the run store", err));
    if (stat(path, &info) == 0) {
        store->device = info.st_dev;
        store->inode = info.st_ino;
    }
    DT_TRY(configure(store, err));
    /* Before anything is written to a file of another program. */
    DT_TRY(dt_store_check(store, &version, err));
    DT_TRY(wal_enable(store, err));
    if (version == 0)
        DT_TRY(dt_store_create(store, err));
    *out = store;
    store = NULL;
out:
    dt_store_close(store);
    dt_arena_release(&arena);
    return st;
}

void dt_store_close(dt_store *store)
{
    if (store == NULL)
        return;
    for (int i = 0; i < store->statement_count; i++)
        sqlite3_finalize(store->statements[i].statement);
    if (store->db != NULL)
        DT_ASSERT(sqlite3_close(store->db) == SQLITE_OK); /* fails if a statement was left open */
    if (store->gatherer != NULL)
        store->gatherer->free(store);
    free(store->path);
    free(store);
}

void dt_store_set_patience(dt_store *store, int ms)
{
    store->patience_ms = ms;
    sqlite3_busy_timeout(store->db, ms);
}

static dt_status begin(dt_store *store, const char *sql, const char *doing, dt_error *err)
{
    if (store->back_owed)
        dt_sql_back(store);
    if (store->back_owed)
        return DT_FAIL(err, DT_ERR_NOMEM, "cannot %s: no memory", doing);
    DT_ASSERT(sqlite3_get_autocommit(store->db));
    dt_sql_after_end(store); /* those of a transaction that SQLite has rolled back */
    return dt_sql_exec(store, sql, doing, err);
}

dt_status dt_store_begin(dt_store *store, dt_error *err)
{
    return begin(store, "BEGIN IMMEDIATE", "write the run store", err);
}

dt_status dt_store_begin_reading(dt_store *store, dt_error *err)
{
    return begin(store, "BEGIN", "read the run store", err);
}

dt_status dt_store_commit(dt_store *store, dt_error *err)
{
    dt_status st = dt_sql_commit(store, err);

    if (st == DT_OK)
        dt_sql_after_end(store);
    return st;
}

void dt_store_rollback(dt_store *store)
{
    dt_sql_back(store);
    dt_sql_after_end(store);
}

dt_status dt_store_sync(dt_store *store, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf path;
    int fd;

    /* Opening and closing the WAL file here is safe: SQLite has no lock on it that closing would release. */
    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s-wal", store->path);
    fd = open(path.data, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot open the log of the run store '%s': %s", path.data,
                 strerror(errno));
    if (fdatasync(fd) != 0 && errno != EINVAL)
        DT_THROW(err, DT_ERR_IO, "cannot sync the run store: %s", strerror(errno));
out:
    if (fd >= 0)
        close(fd);
    dt_strbuf_release(&path);
    return st;
}
