/* vfs: implements SQLite's file layer on the files of the virtual machine, with the locks and
 * the shared memory that the write-ahead log needs. A process that ends releases all of its
 * locks. The index of the log is removed with its last user, and recovered by the next. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

typedef struct sim_db {
    sqlite3_file base;
    struct sim_db *next; /* of the same file */
    sim_machine *machine;
    sim_inode *inode;
    sim_proc *proc;
    int level;                  /* SQLITE_LOCK_... */
    unsigned shared, exclusive; /* locks of the log, a bit each */
} sim_db;

static sim_db *all[256];
static int all_count;

/* --- bytes */

static int file_read(sqlite3_file *file, void *out, int length, sqlite3_int64 offset)
{
    const sim_inode *inode = ((sim_db *)file)->inode;
    int64_t left = inode->length - offset;

    if (left >= length) {
        memcpy(out, inode->data + offset, (size_t)length);
        return SQLITE_OK;
    }
    memset(out, 0, (size_t)length);
    if (left > 0)
        memcpy(out, inode->data + offset, (size_t)left);
    return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *file, const void *bytes, int length, sqlite3_int64 offset)
{
    sim_db *db = (sim_db *)file;

    return sim_fs_write(db->machine, db->inode, offset, bytes, length) ? SQLITE_OK : SQLITE_FULL;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 length)
{
    sim_fs_cut(((sim_db *)file)->inode, length);
    return SQLITE_OK;
}

static int file_sync(sqlite3_file *file, int flags)
{
    sim_fs_sync(((sim_db *)file)->machine, ((sim_db *)file)->inode);
    return SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *out)
{
    *out = ((sim_db *)file)->inode->length;
    return SQLITE_OK;
}

/* --- locks on the file */

static int file_lock(sqlite3_file *file, int level)
{
    sim_db *own = (sim_db *)file;

    for (sim_db *each = own->inode->dbs; each != NULL; each = each->next) {
        if (each == own)
            continue;
        if ((level == SQLITE_LOCK_SHARED && each->level >= SQLITE_LOCK_PENDING) ||
            (level >= SQLITE_LOCK_RESERVED && each->level >= SQLITE_LOCK_RESERVED) ||
            (level == SQLITE_LOCK_EXCLUSIVE && each->level >= SQLITE_LOCK_SHARED))
            return SQLITE_BUSY;
    }
    if (level > own->level)
        own->level = level;
    return SQLITE_OK;
}

static int file_unlock(sqlite3_file *file, int level)
{
    ((sim_db *)file)->level = level;
    return SQLITE_OK;
}

static int file_reserved(sqlite3_file *file, int *out)
{
    *out = 0;
    for (sim_db *each = ((sim_db *)file)->inode->dbs; each != NULL; each = each->next)
        *out = *out || each->level >= SQLITE_LOCK_RESERVED;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *file, int operation, void *argument)
{
    if (operation == SQLITE_FCNTL_HAS_MOVED) {
        *(int *)argument = ((sim_db *)file)->inode->path == NULL;
        return SQLITE_OK;
    }
    return SQLITE_NOTFOUND;
}

static int sector_size(sqlite3_file *file)
{
    return 4096;
}

static int characteristics(sqlite3_file *file)
{
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

/* --- the log's index */

static int shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **out)
{
    sim_inode *inode = ((sim_db *)file)->inode;

    DT_ASSERT(region < (int)(sizeof(inode->shm) / sizeof(inode->shm[0])) && size == SIM_SHM_BYTES);
    if (inode->shm[region] == NULL && extend)
        inode->shm[region] = sim_alloc(SIM_SHM_BYTES);
    *out = inode->shm[region];
    return SQLITE_OK;
}

static int shm_lock(sqlite3_file *file, int first, int count, int flags)
{
    sim_db *own = (sim_db *)file;
    unsigned mask = ((1u << count) - 1) << first;

    if ((flags & SQLITE_SHM_UNLOCK) != 0) {
        own->shared &= ~mask;
        own->exclusive &= ~mask;
        return SQLITE_OK;
    }
    for (sim_db *each = own->inode->dbs; each != NULL; each = each->next)
        if (each != own && ((each->exclusive & mask) != 0 ||
                            ((flags & SQLITE_SHM_EXCLUSIVE) != 0 && (each->shared & mask) != 0)))
            return SQLITE_BUSY;
    if ((flags & SQLITE_SHM_EXCLUSIVE) != 0)
        own->exclusive |= mask;
    else
        own->shared |= mask;
    return SQLITE_OK;
}

static void shm_barrier(sqlite3_file *file) {}

static int shm_unmap(sqlite3_file *file, int forget)
{
    ((sim_db *)file)->shared = ((sim_db *)file)->exclusive = 0;
    return SQLITE_OK;
}

/* --- open and close */

static void let_go(sim_db *db)
{
    sim_db **at = &db->inode->dbs;

    while (*at != db)
        at = &(*at)->next;
    *at = db->next;
    if (db->inode->dbs == NULL)
        memset(db->inode->shm, 0, sizeof(db->inode->shm));
    for (int i = 0; i < all_count; i++)
        if (all[i] == db)
            all[i] = all[--all_count];
}

static int file_close(sqlite3_file *file)
{
    let_go((sim_db *)file);
    return SQLITE_OK;
}

void sim_vfs_drop(sim_proc *proc)
{
    for (int i = all_count - 1; i >= 0; i--)
        if (proc == NULL)
            all_count = 0;
        else if (all[i]->proc == proc)
            let_go(all[i]);
}

/* Makes SQLite's open file refer to the inode, for the running process. */
void sim_vfs_take(void *file, sim_inode *inode)
{
    sim_db *db = file;

    db->machine = sim_machine_self();
    db->inode = inode;
    db->proc = sim_self();
    db->next = inode->dbs;
    inode->dbs = db;
    DT_ASSERT(all_count < (int)(sizeof(all) / sizeof(all[0])));
    all[all_count++] = db;
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    static const sqlite3_io_methods methods = {2,
                                               file_close,
                                               file_read,
                                               file_write,
                                               file_truncate,
                                               file_sync,
                                               file_size,
                                               file_lock,
                                               file_unlock,
                                               file_reserved,
                                               file_control,
                                               sector_size,
                                               characteristics,
                                               shm_map,
                                               shm_lock,
                                               shm_barrier,
                                               shm_unmap,
                                               NULL,
                                               NULL};
    sim_machine *machine = sim_machine_self();
    sim_inode *inode = name != NULL ? sim_fs_find(machine, name) : NULL;

    memset(file, 0, sizeof(sim_db));
    if (inode == NULL && (flags & SQLITE_OPEN_CREATE) == 0)
        return SQLITE_CANTOPEN;
    if (inode == NULL && machine->full_until_ns > sim_now_ns)
        return SQLITE_FULL;
    if (inode == NULL)
        inode = sim_fs_make(machine, name != NULL ? name : "/unnamed", false);
    file->pMethods = &methods;
    sim_vfs_take(file, inode);
    if (out != NULL)
        *out = flags;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    sim_inode *inode = sim_fs_find(sim_machine_self(), name);

    if (inode == NULL)
        return SQLITE_IOERR_DELETE_NOENT;
    sim_fs_remove(sim_machine_self(), inode);
    return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    *out = sim_fs_find(sim_machine_self(), name) != NULL;
    return SQLITE_OK;
}

static int vfs_full_name(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
    sim_fs_resolve(out, (size_t)size, name);
    return SQLITE_OK;
}

static int vfs_random(sqlite3_vfs *vfs, int length, char *out)
{
    for (int i = 0; i < length; i++)
        out[i] = (char)(i * 37 + 11);
    return length;
}

static int vfs_sleep(sqlite3_vfs *vfs, int microseconds)
{
    if (sim_running != NULL)
        sim_sleep((int64_t)microseconds * 1000);
    return microseconds;
}

static int vfs_time(sqlite3_vfs *vfs, sqlite3_int64 *out)
{
    *out = 210866760000000 + 1700000000000 + sim_now_ns / SIM_MS;
    return SQLITE_OK;
}

static int vfs_time_days(sqlite3_vfs *vfs, double *out)
{
    sqlite3_int64 ms;

    vfs_time(vfs, &ms);
    *out = (double)ms / 86400000.0;
    return SQLITE_OK;
}

static int vfs_last_error(sqlite3_vfs *vfs, int size, char *out)
{
    return 0;
}

void sim_vfs_install(void)
{
    static sqlite3_vfs vfs = {.iVersion = 2,
                              .szOsFile = sizeof(sim_db),
                              .mxPathname = 512,
                              .zName = "sim",
                              .xOpen = vfs_open,
                              .xDelete = vfs_delete,
                              .xAccess = vfs_access,
                              .xFullPathname = vfs_full_name,
                              .xRandomness = vfs_random,
                              .xSleep = vfs_sleep,
                              .xCurrentTime = vfs_time_days,
                              .xGetLastError = vfs_last_error,
                              .xCurrentTimeInt64 = vfs_time};

    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    /* The default allocates 20 pages at once, but most connections need fewer. */
    sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
    sqlite3_initialize();
    sqlite3_vfs_register(&vfs, 1);
}
