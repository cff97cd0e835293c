/* opened: connections to the run's store that have read its schema already.
 *
 * A process of a schedule opens the store a dozen times, and what each opening took was SQLite's reading of the same
 * schema. Here some are opened once, before any schedule, to a file with the same tables that is no log's yet, and
 * kept as their bytes in front of a world's memory. Who opens the store gets the next of them, its bytes as they were
 * and its file the one of its machine: a connection that read the schema some time ago, as SQLite knows them. It looks
 * at the file's version as ever, drops the pages that it has, finds the log, and reads the schema again where its
 * cookie is another. When there are no more, or it is another file, one is opened as everywhere. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/schedule.h"
#include "tests/sim/sim.h"

#include "base/banned.h"

#define STORE SIM_STATE "/dtrun/store.db"
#define FLAGS (SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX)

enum { MOST = 64 };

typedef struct opened {
    sqlite3 *db;
    sqlite3_file *file;
    char *bytes, *kept; /* where they belong, and as they were */
    size_t length;
} opened;

static opened all[MOST];
static int count, taken;

int __real_sqlite3_open_v2(const char *path, sqlite3 **out, int flags, const char *vfs);
int __wrap_sqlite3_open_v2(const char *path, sqlite3 **out, int flags, const char *vfs);

/* Offsets of SQLite's file format: 18 and 19 say whether there is a log, 24 counts what was written. */
static void be_another_version(char *file)
{
    file[18] = file[19] = 1;
    memset(file + 24, 0x7f, 4);
    memset(file + 92, 0x7f, 4);
}

static void open_one(opened *one)
{
    one->bytes = sim_memory_slice();
    DT_ASSERT(__real_sqlite3_open_v2(STORE, &one->db, FLAGS, NULL) == SQLITE_OK);
    DT_ASSERT(sqlite3_exec(one->db, "SELECT 1 FROM runs LIMIT 0", NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_db_release_memory(one->db);
    sqlite3_file_control(one->db, "main", SQLITE_FCNTL_FILE_POINTER, &one->file);
    one->length = (size_t)((char *)sim_memory_slice() - one->bytes);
    one->kept = sim_keep(NULL, one->length);
    memcpy(one->kept, one->bytes, one->length);
}

void sim_opened_prepare(void)
{
    sim_inode *store = sim_fs_find(&sim.machines[0], STORE);

    be_another_version(store->data);
    for (count = 0; count < MOST; count++)
        open_one(&all[count]);
    taken = MOST;
    (void)sim_memory_slice();
}

void sim_opened_begin(void)
{
    taken = 0;
}

int __wrap_sqlite3_open_v2(const char *path, sqlite3 **out, int flags, const char *vfs)
{
    const opened *one = &all[taken];
    sim_inode *inode = sim_fs_find(sim_machine_self(), path);

    if (taken == count || flags != FLAGS || inode == NULL || strcmp(path, STORE) != 0)
        return __real_sqlite3_open_v2(path, out, flags, vfs);
    taken++;
    memcpy(one->bytes, one->kept, one->length);
    sim_vfs_take(one->file, inode);
    *out = one->db;
    return SQLITE_OK;
}
