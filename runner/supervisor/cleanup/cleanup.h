/* cleanup: what is left on nodes: files of the ended run (cleanup), and ranks of earlier attempts (reap).
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
#ifndef DT_RUNNER_SUPERVISOR_CLEANUP_CLEANUP_H
#define DT_RUNNER_SUPERVISOR_CLEANUP_CLEANUP_H

#include <stdbool.h>
#include <uv.h>

#include "base/memory.h"
#include "store/event.h"

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

/* reap: ends the ranks on nodes that earlier attempts lost and that this attempt does not use.
 *
 * Such a node may come back with the ranks that it had, which still hold memory there. Until the run ends,
 * `dtrun-agent end` is tried there again and again; after a success the node's row says "released". A run
 * that is stopped waits for one more try on each node, and reports nodes that still cannot be asked: exit
 * code 5. (A node that this attempt uses is cleared by its own agent before ranks are started.)
 *
 * Ownership  call free when the loop has no more handles
 * Threads    call from the loop's thread
 */

typedef struct dt_reaper dt_reaper;

typedef struct dt_reaper_calls {
    bool (*is_over)(void *context); /* the session is ending: no more callbacks */
    /* Nothing of that attempt is left on the node; `row` says so. */
    void (*reaped)(void *context, int64_t attempt, const dt_node *row);
    void (*settled)(void *context); /* the result of is_done may have changed */
} dt_reaper_calls;

/* Borrowed; must outlive the reaper. */
typedef struct dt_reaper_setup {
    uv_loop_t *loop;
    dt_store *store;
    const char *run, *folder; /* runs/ID */
    int64_t attempt;          /* attempts before this one are handled */
} dt_reaper_setup;

/* *out must be closed and freed, also on failure. */
dt_status dt_reaper_open(dt_reaper **out, const dt_reaper_setup *setup,
                         const dt_reaper_calls *calls, void *context, dt_error *err);
void dt_reaper_begin(dt_reaper *reaper); /* starts the tries */
/* Makes a last try on each node, and returns whether all are finished. Call when the run ends. */
bool dt_reaper_is_done(dt_reaper *reaper);
/* Calls `report` with a line for each node that could not be asked. */
void dt_reaper_list_unreached(const dt_reaper *reaper, void (*report)(void *context, const char *text),
                              void *context);
void dt_reaper_close(dt_reaper *reaper); /* kills running processes; accepts NULL */
void dt_reaper_free(dt_reaper *reaper);  /* accepts NULL */

#endif
