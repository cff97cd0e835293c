/* read_only: opens the store where it cannot be written: on a full disk, or a file system that is mounted read-only.
 *
 * SQLite can read a store with a WAL without writing only if its -shm also exists. Without a WAL no process
 * writes the file, and it is opened as immutable.
 */
#include "store/store_int.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/dirs.h"
#include "base/strbuf.h"

static bool has_wal(const char *path)
{
    struct stat info;
    dt_strbuf name;
    bool has;

    dt_strbuf_init(&name);
    dt_strbuf_add_fmt(&name, "%s-wal", path);
    has = stat(name.data, &info) == 0 && info.st_size > 0;
    dt_strbuf_release(&name);
    return has;
}

/* Writes "file:PATH?..." with characters that have a meaning in a URI quoted. */
static void write_uri(dt_strbuf *out, const char *path, const char *options)
{
    dt_strbuf_add_str(out, "file:");
    for (; *path != '\0'; path++)
        if (strchr("%?#", *path) != NULL)
            dt_strbuf_add_fmt(out, "%%%02X", (unsigned)(unsigned char)*path);
        else
            dt_strbuf_add_char(out, *path);
    dt_strbuf_add_fmt(out, "?%s", options);
}

static dt_status open_file(dt_store *store, const char *options, dt_error *err)
{
    int64_t version = 0;
    dt_strbuf uri;
    dt_status st = DT_OK;
    int code;

    dt_strbuf_init(&uri);
    write_uri(&uri, store->path, options);
    code = sqlite3_open_v2(uri.data, &store->db,
                           SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    if (store->db == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "cannot open the run store: no memory");
    if (code != SQLITE_OK)
        DT_TRY(dt_sql_fail(store, code, "open the run store", err));
    dt_sql_harden(store->db);
    sqlite3_extended_result_codes(store->db, 1);
    sqlite3_busy_timeout(store->db, DT_STORE_BUSY_TIMEOUT_MS);
    DT_TRY(dt_sql_exec(store, "PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON",
                       "open the run store", err));
    DT_TRY(dt_store_check(store, &version, err));
    if (version == 0)
        DT_THROW(err, DT_ERR_IO,
                 "cannot open the run store '%s': it is empty and cannot be written", store->path);
out:
    dt_strbuf_release(&uri);
    return st;
}

static dt_status open_to_read(dt_store **out, const char *path, const char *options, dt_error *err)
{
    dt_store *store = dt_calloc(1, sizeof(*store));
    dt_status st = DT_OK;

    *out = NULL;
    store->path = dt_strdup(path);
    DT_TRY(open_file(store, options, err));
    *out = store;
    store = NULL;
out:
    dt_store_close(store);
    return st;
}

bool dt_store_can_write(const dt_store *store)
{
    return sqlite3_db_readonly(store->db, "main") == 0;
}

dt_status dt_store_open_to_read(dt_store **out, const char *path, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = dt_store_open(out, path, &problem);
    const char *folder;
    dt_arena arena;

    if (st == DT_OK)
        return DT_OK;
    dt_arena_init(&arena, 0);
    if (st == DT_ERR_IO && path == NULL &&
        dt_dir_path(&folder, DT_DIR_STATE, &arena, NULL) == DT_OK)
        path = dt_arena_printf(&arena, "%s/store.db", folder);
    if (st == DT_ERR_IO && path != NULL && access(path, R_OK) == 0) {
        st = open_to_read(out, path, "mode=ro", NULL);
        if (st != DT_OK && !has_wal(path))
            st = open_to_read(out, path, "mode=ro&immutable=1", NULL);
    }
    dt_arena_release(&arena);
    return st == DT_OK ? DT_OK : DT_FAIL(err, problem.code, "%s", problem.message);
}
