/* backup: the history as one more file, while others use it: for whoever asks, and before a migration. */
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

static dt_status copy_pages(sqlite3 *source, sqlite3 *target, dt_error *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(target, "main", source, "main");
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

/* On the disk, and a file of its own, that is read without others beside it. */
static dt_status copy_to(sqlite3 *source, const char *path, dt_error *err)
{
    sqlite3 *target = NULL;
    dt_status st = DT_OK;

    DT_TRY(make_file(path, err));
    if (sqlite3_open_v2(path, &target, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", path, sqlite3_errmsg(target));
    DT_TRY(copy_pages(source, target, err));
    if (sqlite3_exec(target, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) != SQLITE_OK)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", path, sqlite3_errmsg(target));
    sqlite3_close(target);
    target = NULL;
    DT_TRY(sync_file(path, err));
out:
    sqlite3_close(target);
    return st;
}

/* With what SQLite may have left beside it. */
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

dt_status dt_store_backup(dt_store *store, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf partial;

    dt_strbuf_init(&partial);
    dt_strbuf_add_fmt(&partial, "%s.partial", path);
    if (dt_file_exists(path))
        DT_THROW(err, DT_ERR_USAGE, "'%s' is there already: a backup replaces nothing", path);
    DT_TRY(copy_to(store->db, partial.data, err));
    if (link(partial.data, path) != 0) /* takes no other's place */
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
out:
    remove_partial(partial.data);
    dt_strbuf_release(&partial);
    return st;
}

/* By a connection of its own, for the one that holds the lock may not be read from by a backup. */
dt_status dt_store_backup_version(dt_store *store, int64_t version, dt_error *err)
{
    sqlite3 *source = NULL;
    dt_status st = DT_OK;
    dt_strbuf path, partial;

    dt_strbuf_init(&path);
    dt_strbuf_init(&partial);
    dt_strbuf_add_fmt(&path, "%s%s.version-%lld", strchr(store->path, '/') == NULL ? "./" : "",
                      store->path, (long long)version);
    dt_strbuf_add_fmt(&partial, "%s.partial", path.data);
    if (sqlite3_open_v2(store->path, &source, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        DT_THROW(err, DT_ERR_IO, "cannot open '%s': %s", store->path, sqlite3_errmsg(source));
    DT_TRY(copy_to(source, partial.data, err));
    if (rename(partial.data, path.data) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", path.data, strerror(errno));
    *strrchr(path.data, '/') = '\0';
    DT_TRY(dt_file_sync_dir(path.data, err));
out:
    if (st != DT_OK)
        dt_error_prefix(err, "the run store is copied before it is migrated");
    sqlite3_close(source);
    remove_partial(partial.data);
    dt_strbuf_release(&path);
    dt_strbuf_release(&partial);
    return st;
}
