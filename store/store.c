/* store: opens the store. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "store/store_int.h"

/* place: checks the file system of the store, and its permissions.
 *
 * WAL needs shared memory and locks that work across processes; network and cluster file systems provide both per
 * host only, which damages a store sooner or later.
 */

#define FUSE_TYPE 0x65735546UL

static const struct {
    unsigned long type; /* f_type of statfs, as in linux/magic.h and the sources of file systems */
    const char *name;
} refused[] = {
    {0x6969UL, "NFS"},        {0x517BUL, "SMB"},        {0xFF534D42UL, "CIFS"},
    {0xFE534D42UL, "SMB2"},   {0x0BD00BD0UL, "Lustre"}, {0x47504653UL, "GPFS"},
    {0x19830326UL, "BeeGFS"}, {0x00C36400UL, "Ceph"},   {0x5346414FUL, "AFS"},
    {0x73757245UL, "Coda"},   {0x01021997UL, "9P"},     {0x7461636FUL, "OCFS2"},
    {0x01161970UL, "GFS2"},   {0xAAD7AAEAUL, "PanFS"},  {0x786F4256UL, "VirtualBox"},
    {0xBACBACBCUL, "VMware"},
};

/* FUSE file systems that store data on a local disk; all others are refused. */
static const char *const local_fuse[] = {"fuse-overlayfs", "overlayfs", "bindfs",    "mergerfs",
                                         "ntfs-3g",        "fuseblk",   "gocryptfs", "encfs"};

const char *dt_store_file_system_refused(unsigned long type, const char *fuse_name)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (refused[i].type == type)
            return refused[i].name;
    if (type != FUSE_TYPE)
        return NULL;
    for (size_t i = 0; i < sizeof(local_fuse) / sizeof(local_fuse[0]); i++)
        if (strcmp(local_fuse[i], fuse_name) == 0)
            return NULL;
    return fuse_name[0] != '\0' ? fuse_name : "FUSE";
}

/* Returns the type of the mount that holds `device`, without "fuse."; "" if the mount table does not list it. */
static void mount_type(char *out, size_t size, dev_t device)
{
    char wanted[32], *line = NULL;
    size_t line_size = 0;
    FILE *table = fopen("/proc/self/mountinfo", "re");

    out[0] = '\0';
    if (table == NULL)
        return;
    snprintf(wanted, sizeof(wanted), " %u:%u ", major(device), minor(device));
    while (getline(&line, &line_size, table) > 0) {
        const char *type = strstr(line, " - ");
        if (type == NULL || strstr(line, wanted) == NULL)
            continue;
        type += strlen(" - ");
        if (strncmp(type, "fuse.", 5) == 0)
            type += 5;
        snprintf(out, size, "%.*s", (int)strcspn(type, " "), type);
    }
    free(line);
    fclose(table);
}

static dt_status folder_check(const char *path, dt_error *err)
{
    char folder[4096], fuse_name[64] = "";
    const char *slash = strrchr(path, '/'), *name;
    struct statfs system;
    struct stat info;

    if (slash == NULL)
        snprintf(folder, sizeof(folder), ".");
    else if (snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path),
                      path) >= (int)sizeof(folder))
        return DT_FAIL(err, DT_ERR_IO, "cannot open the run store: its path is too long");
    if (statfs(folder, &system) != 0 || stat(folder, &info) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot open the run store in '%s': %s", folder,
                       strerror(errno));
    if ((unsigned long)system.f_type == FUSE_TYPE)
        mount_type(fuse_name, sizeof(fuse_name), info.st_dev);
    /* f_type is signed on some machines: compare its lower 32 bits */
    name = dt_store_file_system_refused((unsigned long)system.f_type & 0xFFFFFFFFUL, fuse_name);
    if (name != NULL)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "cannot keep the run store in '%s': it is on a network file system (%s), "
                       "where SQLite's locks do not hold (set XDG_STATE_HOME to a folder on a "
                       "local disk)",
                       folder, name);
    return DT_OK;
}

/* Checks the folder, creates the file if missing, and sets mode 0600. */
static dt_status store_file_prepare(const char *path, dt_error *err)
{
    dt_status st = folder_check(path, err);
    struct stat info;
    int fd;

    if (st != DT_OK)
        return st;
    /* The file is created here instead of by SQLite, for its mode; SQLite gives -wal and -shm the same mode. An
     * existing file is never opened and closed here: closing it would release the locks that another handle of this
     * process has on it. */
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
        return DT_OK;
    }
    if (errno != EEXIST)
        return DT_FAIL(err, DT_ERR_IO, "cannot make the run store '%s': %s", path, strerror(errno));
    if (stat(path, &info) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot open the run store '%s': %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return DT_FAIL(err, DT_ERR_IO, "cannot open the run store '%s': it is not a file", path);
    if (access(path, R_OK | W_OK) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot open the run store '%s': %s", path, strerror(errno));
    if ((info.st_mode & 0077) != 0 && chmod(path, 0600) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot make the run store '%s' private (mode 0600): %s",
                       path, strerror(errno));
    return DT_OK;
}

/* --- opening */

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
    DT_TRY(store_file_prepare(path, err));
    store = dt_calloc(1, sizeof(*store));
    store->watch = -1;
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
    if (store->watch >= 0)
        close(store->watch);
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

/* --- waiting for a change: a write to the WAL, which is in the store's folder */

#define WAIT_LEAST_SECONDS 0.02

static int watch_folder(const dt_store *store)
{
    char *folder = dt_strdup(store->path), *slash = strrchr(folder, '/');
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (slash == NULL)
        folder[0] = '.';
    folder[slash != NULL ? slash - folder + 1 : 1] = '\0';
    if (watch >= 0 && inotify_add_watch(watch, folder, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0) {
        close(watch);
        watch = -1;
    }
    free(folder);
    return watch;
}

/* Reads the events that have come. Returns whether one is about a file whose name begins with the store's, or the queue. */
static bool read_changes(const dt_store *store)
{
    char events[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
    const char *slash = strrchr(store->path, '/');
    const char *name = slash != NULL ? slash + 1 : store->path;
    bool changed = false;
    ssize_t got;

    while ((got = read(store->watch, events, sizeof(events))) > 0)
        for (ssize_t at = 0; at < got;) {
            const struct inotify_event *event = (const void *)(events + at);

            changed = changed || (event->mask & IN_Q_OVERFLOW) != 0 ||
                      (event->len > 0 && (strncmp(event->name, name, strlen(name)) == 0 ||
                                          strcmp(event->name, "queue.json") == 0 ||
                                          strcmp(event->name, "queue.gpus.json") == 0));
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    return changed;
}

bool dt_store_wait(dt_store *store, double seconds)
{
    double end = dt_clock_monotonic_seconds() + seconds, left;
    bool changed = false;

    if (store->watch < 0)
        store->watch = watch_folder(store);
    dt_clock_sleep_seconds(seconds < WAIT_LEAST_SECONDS ? seconds : WAIT_LEAST_SECONDS);
    while (!changed && (left = end - dt_clock_monotonic_seconds()) > 0) {
        struct pollfd watch = {store->watch, POLLIN, 0};

        if (poll(&watch, 1, (int)(left * 1000) + 1) <= 0)
            break; /* the time is over, or a signal came */
        changed = read_changes(store);
    }
    return changed;
}

/* read_only: opens the store where it cannot be written: on a full disk, or a file system that is mounted read-only.
 *
 * SQLite can read a store with a WAL without writing only if its -shm also exists. Without a WAL no process
 * writes the file, and it is opened as immutable.
 */

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
    store->watch = -1;
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
