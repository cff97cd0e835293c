/* maintain: what is done to the history as a whole, or to a run for good. */
#define _GNU_SOURCE
#include "store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"

#include "base/banned.h"

dt_status dt_store_run_remove(dt_store *store, const char *run, dt_error *err)
{
    dt_sql_group group = {0};
    dt_status st = DT_OK;
    int64_t number;

    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_RUN(store, err, "DELETE FROM runs WHERE run = ?1", DT_INT(number)));
out:
    return dt_sql_group_end(&group, st, err);
}

/* --- copied */

static dt_status copy_pages(dt_store *store, sqlite3 *target, dt_error *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(target, "main", store->db, "main");
    int code = SQLITE_OK;

    if (backup == NULL)
        return DT_FAIL(err, DT_ERR_IO, "cannot copy the run store: %s", sqlite3_errmsg(target));
    code = sqlite3_backup_step(backup, -1); /* as it is at this moment; writers continue */
    sqlite3_backup_finish(backup);
    if (code != SQLITE_DONE)
        return DT_FAIL(err, DT_ERR_IO, "cannot copy the run store: %s", sqlite3_errstr(code));
    return DT_OK;
}

/* Made here for its mode; whatever a backup that was cut short left there is written over. */
static dt_status make_file(const char *path, dt_error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    close(fd);
    return DT_OK;
}

static dt_status sync_file(const char *path, dt_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    return good ? DT_OK : DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
}

dt_status dt_store_backup(dt_store *store, const char *path, dt_error *err)
{
    sqlite3 *target = NULL;
    dt_status st = DT_OK;
    dt_strbuf partial;

    dt_strbuf_init(&partial);
    dt_strbuf_add_fmt(&partial, "%s.partial", path);
    if (dt_file_exists(path))
        DT_THROW(err, DT_ERR_USAGE, "'%s' is there already: a backup replaces nothing", path);
    DT_TRY(make_file(partial.data, err));
    if (sqlite3_open_v2(partial.data, &target, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", partial.data, sqlite3_errmsg(target));
    DT_TRY(copy_pages(store, target, err));
    /* A file of its own, that is read without others beside it. */
    if (sqlite3_exec(target, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) != SQLITE_OK)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", partial.data, sqlite3_errmsg(target));
    sqlite3_close(target);
    target = NULL;
    DT_TRY(sync_file(partial.data, err));
    if (link(partial.data, path) != 0) /* takes no other's place */
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
out:
    sqlite3_close(target);
    unlink(partial.data);
    dt_strbuf_release(&partial);
    return st;
}
