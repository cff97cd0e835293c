/* reap: nodes that earlier attempts lost, and that this one does without.
 *
 * Such a node may come back with the ranks it had: they hold its memory and nobody asks for them.
 * Until the run ends, `dtrun-agent end` is tried there again and again; where it came to a good end
 * the node's row says "released". A run that is stopped waits for one more try of each, and what
 * still could not be asked is reported: exit code 5. (A node that this attempt uses is swept by its
 * own agent, before ranks are started.)
 *
 * Ownership  free once the loop has run dry
 * Threads    the loop's
 */
#ifndef DT_CLEANUP_REAP_H
#define DT_CLEANUP_REAP_H

#include <uv.h>

#include "base/arena.h"
#include "store/store.h"

typedef struct dt_reaper dt_reaper;

typedef struct dt_reaper_calls {
    bool (*is_over)(void *context); /* the session ends: nothing more is told */
    /* Nothing of that attempt is left there; the row says so. */
    void (*reaped)(void *context, int64_t attempt, const dt_node *row);
    void (*settled)(void *context); /* is_done may say something else now */
} dt_reaper_calls;

/* Borrowed, and longer-lived. */
typedef struct dt_reaper_setup {
    uv_loop_t *loop;
    dt_store *store;
    const char *run, *folder; /* runs/ID */
    int64_t attempt;          /* those before it are looked at */
} dt_reaper_setup;

/* *out is to be closed and freed whatever comes back. */
dt_status dt_reaper_open(dt_reaper **out, const dt_reaper_setup *setup,
                         const dt_reaper_calls *calls, void *context, dt_error *err);
void dt_reaper_begin(dt_reaper *reaper); /* from now on */
/* The run ends: makes a last try of each, and says whether it is over. */
bool dt_reaper_is_done(dt_reaper *reaper);
/* A line for each node that could not be asked. */
void dt_reaper_tell(const dt_reaper *reaper, void (*tell)(void *context, const char *text),
                    void *context);
void dt_reaper_close(dt_reaper *reaper); /* what runs is killed; accepts NULL */
void dt_reaper_free(dt_reaper *reaper);  /* accepts NULL */

#endif
