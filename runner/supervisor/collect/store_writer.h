/* store_writer: writes the run store on a thread of its own, so that a lock on the store or a slow disk does
 * not block the loop: agents are answered, silence is judged, and stops are handled.
 *
 *   loop     add, add, add, submit ──► queue ──► one transaction      thread
 *            on_stored(number)     ◄── async ◄── committed
 *
 * A submit ends a batch. Batches are stored in order, each completely or not at all; several waiting batches
 * share a transaction. A failure that may be temporary (the store is locked, its disk is full) is retried once
 * a second, without limit; any other failure is reported once, and nothing more is written.
 *
 * A committed transaction survives the death of this process, but not a power loss: the store's log is synced
 * once a second (a sync per transaction would cost as much as everything else), and batches stored before a
 * sync are then reported as durable.
 *
 * Ownership  add copies the bytes that it is given; copy what it points to with dt_store_writer_copy
 * Threads    call from the loop's thread. The added functions run on the writer's thread, with its own store,
 *            and again if a transaction is repeated
 */
#ifndef DT_COLLECT_STORE_WRITER_H
#define DT_COLLECT_STORE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "store/store.h"

typedef struct dt_store_writer dt_store_writer;

/* Makes one change in the open transaction. */
typedef dt_status dt_store_write_fn(dt_store *store, const void *what, dt_error *err);

typedef struct dt_store_writer_calls {
    /* All batches up to this number are stored and visible to readers. */
    void (*stored)(void *context, int64_t batch);
    /* All batches up to this number are durable. Called once a second, and after a requested
     * sync. NULL: nothing is synced. */
    void (*durable)(void *context, int64_t batch);
    /* On the writer's thread, before `durable`: syncs files that belong to the batches. NULL:
     * none. */
    dt_status (*sync)(void *context, dt_error *err);
    /* On the writer's thread: the store's file was removed or replaced; `old` is the store that
     * was written to. Afterwards nothing more is written, and a failure is reported. NULL: not
     * checked. */
    dt_status (*replaced)(void *context, dt_store *old, dt_error *err);
    /* A lasting failure; called once. */
    void (*failed)(void *context, dt_status st, const dt_error *err);
    /* On the writer's thread: a transaction was committed, or rolled back to be tried again.
     * NULL: no callback. */
    void (*settled)(void *context, bool committed);
} dt_store_writer_calls;

/* path: as for dt_store_open; borrowed until close. */
dt_status dt_store_writer_open(dt_store_writer **out, const char *path, uv_loop_t *loop,
                               const dt_store_writer_calls *calls, void *context, dt_error *err);
/* Discards what is not stored yet, and waits for the thread (up to a second while the store is
 * locked). Accepts NULL. The loop must run once more. */
void dt_store_writer_close(dt_store_writer *writer);

/* Returns a copy that lives as long as the open batch. */
const void *dt_store_writer_copy(dt_store_writer *writer, const void *what, size_t bytes);
void dt_store_writer_add(dt_store_writer *writer, dt_store_write_fn *write, const void *what,
                         size_t bytes);
/* Ends the batch if anything was added; returns the number of the last batch. */
int64_t dt_store_writer_submit(dt_store_writer *writer);

/* Asks for a sync as soon as everything submitted is stored. */
void dt_store_writer_request_sync(dt_store_writer *writer);

/* True if batches cannot be stored at the moment; appends the reason to `why`. */
bool dt_store_writer_is_stalled(dt_store_writer *writer, dt_strbuf *why);

/* True if everything that was added is stored and reported; also without a writer. */
bool dt_store_writer_is_idle(const dt_store_writer *writer);
/* True if the batch survives a power loss. */
bool dt_store_writer_is_durable(const dt_store_writer *writer, int64_t number);
size_t dt_store_writer_waiting_bytes(dt_store_writer *writer);
#endif
