/* store_writer: the run store is written on a thread of its own, so that no lock that somebody
 * holds on it and no slow disk holds up the loop: agents are answered, silence is judged, stop is
 * heard.
 *
 *   loop     add, add, add, submit ──► queue ──► one transaction      thread
 *            on_stored(number)     ◄── async ◄── committed
 *
 * A batch is what one submit ends. Batches are stored in their order, several in one transaction
 * where they wait, each whole or not at all. What fails for a reason that may pass (the store is
 * locked, its disk is full) is tried again, once a second, for ever; any other failure is reported
 * once, and nothing more is written.
 *
 * A transaction outlives this process, and not a power loss: the store's log is synced once a second
 * (a sync for every transaction would cost as much as all the rest), and what was stored before that
 * is then reported as durable.
 *
 * Ownership  add copies the bytes it is given; strings go into dt_store_writer_text
 * Threads    everything here is the loop's, but for the functions that are added: those run on the
 *            writer's thread, with a store of its own, and again where the transaction is repeated
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

/* One change, in the open transaction. */
typedef dt_status dt_store_write_fn(dt_store *store, const void *what, dt_error *err);

typedef struct dt_store_writer_calls {
    /* All batches up to this number are stored: who reads the store sees them. */
    void (*stored)(void *context, int64_t batch);
    /* ... and are on the disk: no power loss takes them. Once a second, and when hurried. NULL: not
     * wanted, and nothing is synced. */
    void (*durable)(void *context, int64_t batch);
    /* On the thread: before that, what belongs to them beside the store. NULL: nothing. */
    dt_status (*sync)(void *context, dt_error *err);
    /* On the thread: the file of the store was removed or replaced; `old` is what was written to so
     * far. Afterwards nothing more is written, and it is reported as a failure. NULL: not looked
     * at. */
    dt_status (*replaced)(void *context, dt_store *old, dt_error *err);
    /* What does not pass; once. */
    void (*failed)(void *context, dt_status st, const dt_error *err);
    /* On the thread: a transaction was committed; or taken back, and is tried again later. NULL:
     * not wanted. */
    void (*settled)(void *context, bool committed);
} dt_store_writer_calls;

/* path: as dt_store_open takes it; borrowed until close. */
dt_status dt_store_writer_open(dt_store_writer **out, const char *path, uv_loop_t *loop,
                               const dt_store_writer_calls *calls, void *context, dt_error *err);
/* What is not stored yet is let go of; waits for the thread, a second at most while the store is
 * locked. Accepts NULL. The loop must turn once more. */
void dt_store_writer_close(dt_store_writer *writer);

/* A copy that lives as long as the batch that is open now; NULL stays NULL. */
const char *dt_store_writer_text(dt_store_writer *writer, const char *text);
void dt_store_writer_add(dt_store_writer *writer, dt_store_write_fn *write, const void *what,
                         size_t bytes);
/* Ends the batch, if anything was added; returns the number of the last one. */
int64_t dt_store_writer_submit(dt_store_writer *writer);

/* What was submitted is wanted on the disk at once. */
void dt_store_writer_request_sync(dt_store_writer *writer);

/* Whether what was submitted cannot be stored at the moment; then the reason is appended to `why`. */
bool dt_store_writer_is_stalled(dt_store_writer *writer, dt_strbuf *why);

/* All that was added is stored, and was reported; also where there is none. */
bool dt_store_writer_is_idle(const dt_store_writer *writer);
/* No power loss takes the batch any more. */
bool dt_store_writer_is_durable(const dt_store_writer *writer, int64_t number);
size_t dt_store_writer_waiting_bytes(dt_store_writer *writer);
#endif
