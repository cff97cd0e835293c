/* store: keeps the run history in one SQLite file.
 *
 * Invariants
 *   1 A run ends exactly once per attempt: a terminal state is only left by a new attempt.
 *   2 Metrics are append-only, keyed (run, attempt, name, step).
 *   3 Events from a node's journal and the journal's new acknowledged number are written in one
 *     transaction, so that a writer that dies at any moment neither loses nor repeats an event. The
 *     number is sent to the node only after dt_store_sync: the node may then delete these events, and
 *     a power loss must not lose them here.
 *   4 Each multi-row change is one transaction.
 *   5 One writer per run (its supervisor, which holds the run's lock); readers need no lock.
 *   6 The pyramid of a curve agrees with its points at every commit (curve_pyramid.c).
 *
 * File       mode 0600, WAL, synchronous=NORMAL, busy timeout 30 s, user_version = 1
 *            (store/schema.sql). Another user_version, a network file system, a damaged or foreign
 *            file: an error.
 * Headers    this file opens a store and begins its transactions; run.h has runs and their attempts, curve.h the curves
 *            of metrics, event.h nodes, ranks, events and checkpoints, activity.h what a run does at present
 * Ownership  strings of structs that readers fill live in the arena
 * Threads    one handle, one thread
 */
#ifndef DT_STORE_H
#define DT_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_store dt_store;

/* --- opening, transactions, a replaced file */
/* Opens $XDG_STATE_HOME/dtrun/store.db where path is NULL, and creates it if missing. */
dt_status dt_store_open(dt_store **out, const char *path, dt_error *err);
/* Opens the store for reading, also on a read-only file system (store.c); writing then fails. */
dt_status dt_store_open_to_read(dt_store **out, const char *path, dt_error *err);
bool dt_store_can_write(const dt_store *store);
void dt_store_close(dt_store *store);
/* Sets how long a change waits for another process that holds the store; default 30 s. */
void dt_store_set_patience(dt_store *store, int ms);
dt_status dt_store_begin(dt_store *store, dt_error *err); /* IMMEDIATE; not nested */
/* Begins a read transaction: reads see one snapshot until dt_store_rollback. Not nested. */
dt_status dt_store_begin_reading(dt_store *store, dt_error *err);
dt_status dt_store_commit(dt_store *store, dt_error *err);
void dt_store_rollback(dt_store *store);
/* Returns false once the file at the store's path was removed or replaced. */
bool dt_store_is_current(const dt_store *store);
/* For readers, after dt_store_is_current returned false: if the new file has the run, reopens the handle on that
 * file and returns true. Event ids differ in the new file. Otherwise leaves the handle alone and returns false. */
bool dt_store_renew(dt_store *store, const char *run);
/* For the writer, after dt_store_is_current returned false: copies the rows of the run to the file that is now at
 * the path, which is created if missing; rows of the run that it already has are kept. Must not be called in a
 * transaction. (backup.c) */
dt_status dt_store_move_run(dt_store *old, const char *run, dt_error *err);
/* Returns a number that changes when another connection has changed the store. */
dt_status dt_store_version_seen(dt_store *store, int64_t *out, dt_error *err);
/* Waits until another process has changed the store, or the file queue.json beside it. Returns false if none did within `seconds`, or the file system does
 * not tell. Two calls in a row take at least 20 ms. */
bool dt_store_wait(dt_store *store, double seconds);
/* Syncs all commits to the disk, so that a power loss cannot undo them. */
dt_status dt_store_sync(dt_store *store, dt_error *err);

/* --- backup.c */
/* Copies the store to a new file, mode 0600, while others may write. The copy is verified before it is renamed to
 * `path`. DT_ERR_USAGE: `path` exists; DT_ERR_CORRUPT: the store is damaged, and no file is left. */
dt_status dt_store_backup(dt_store *store, const char *path, dt_error *err);

/* --- schema.c */
/* Reads the whole store and lists what is damaged, as messages: the file, or pyramids that differ from their points. */
dt_status dt_store_verify(dt_store *store, const char ***problems, int64_t *count, dt_arena *arena,
                          dt_error *err);

/* --- sql_views.c */
typedef struct dt_query_value {
    enum { DT_QUERY_NULL, DT_QUERY_INT, DT_QUERY_REAL, DT_QUERY_TEXT } kind;
    int64_t integer;
    double real;
    const char *text; /* valid until `take` returns */
} dt_query_value;
/* Called once with values NULL before the first row, then once per row. */
typedef void (*dt_query_take)(void *context, const char *const *names, const dt_query_value *values,
                              int count);
/* Runs one SELECT on a read-only connection. DT_ERR_USAGE: not a SELECT, or an SQL error; DT_ERR_TIMEOUT: no result
 * within `seconds`. */
dt_status dt_store_query(dt_store *store, const char *sql, double seconds, dt_query_take take,
                         void *context, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
