/* cleanup: removes what an ended run left on its nodes, once everything is stored here.
 *
 * For each attempt and node it removes the attempt's folder if the journal is stored up to `released`, its
 * last line; and the checkpoints, except those that are not on this machine. (An agent that is about to leave
 * is waited for on the node.) Nothing is removed on lost nodes, or if processes were left.
 * This happens before the end is stored, so that nobody resumes the run meanwhile. If the supervisor dies,
 * the next one starts over and finds less to do: a finished folder has the file `tidied` in attempt-N/node-K
 * on this machine. What cannot be removed, or not in time, is kept and reported, and the run still ends.
 *
 * Nodes are cleaned in parallel on threads of libuv's pool; the attempts of one node one after the other.
 *
 * Ownership  call free when the loop has no more handles
 * Threads    call from the loop's thread
 */
#ifndef DT_CLEANUP_CLEANUP_H
#define DT_CLEANUP_CLEANUP_H

#include <stdbool.h>
#include <uv.h>

#include "store/store.h"

typedef struct dt_cleanup dt_cleanup;

typedef struct dt_cleanup_calls {
    bool (*is_over)(void *context); /* the session is ending: no more callbacks */
    /* ranks may run there, and it does not answer */
    bool (*is_lost)(void *context, const char *node);
    /* files of the command stay on a node */
    void (*kept)(void *context, const char *text);
    void (*settled)(void *context); /* everything is done */
} dt_cleanup_calls;

/* Borrowed; must outlive the cleanup. */
typedef struct dt_cleanup_setup {
    uv_loop_t *loop;
    dt_store *store;
    const char *run, *folder; /* runs/ID */
    int64_t attempt;          /* last attempt */
} dt_cleanup_setup;

dt_cleanup *dt_cleanup_open(const dt_cleanup_setup *setup, const dt_cleanup_calls *calls,
                            void *context);
/* Starts the cleanup at the first call, and returns whether it is finished. Call when the run
 * ends and no attempt follows. */
bool dt_cleanup_is_done(dt_cleanup *cleanup);
void dt_cleanup_cancel(dt_cleanup *cleanup); /* takes effect soon; accepts NULL */
void dt_cleanup_free(dt_cleanup *cleanup);   /* accepts NULL */

#endif
