/* opened: keeps connections to the run's store that have already read its schema.
 *
 * A process of a schedule opens the store a dozen times, and most of the time of each opening was SQLite reading the
 * same schema. Here some connections are opened once, before any schedule, to a file with the same tables and no
 * log, and their bytes are kept in front of a world's memory. Opening the store returns the next of these
 * connections, with its bytes restored and its file replaced by that of the machine: SQLite sees a connection that
 * read the schema some time ago. It checks the file's version as always, drops its cached pages, finds the log, and
 * reads the schema again if its cookie differs. When all are used, or for another file, a connection is opened
 * normally. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/schedule.h"
#include "tests/sim/sim.h"

#define STORE SIM_STATE "/dtrun/store.db"
#define FLAGS (SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX)

enum { MOST = 64 };

typedef struct opened {
    sqlite3 *db;
    sqlite3_file *file;
    char *bytes, *kept; /* where they belong, and a copy of their first state */
    size_t length;
} opened;

static opened all[MOST];
static int count, taken;

int __real_sqlite3_open_v2(const char *path, sqlite3 **out, int flags, const char *vfs);
int __wrap_sqlite3_open_v2(const char *path, sqlite3 **out, int flags, const char *vfs);

/* Changes fields of SQLite's file header: 18 and 19 say whether there is a log, 24 counts changes. */
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
