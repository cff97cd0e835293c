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
#ifndef DT_CLEANUP_REAP_H
#define DT_CLEANUP_REAP_H

#include <uv.h>

#include "base/arena.h"
#include "store/store.h"

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
/* Calls `tell` with a line for each node that could not be asked. */
void dt_reaper_tell(const dt_reaper *reaper, void (*tell)(void *context, const char *text),
                    void *context);
void dt_reaper_close(dt_reaper *reaper); /* kills running processes; accepts NULL */
void dt_reaper_free(dt_reaper *reaper);  /* accepts NULL */

#endif
