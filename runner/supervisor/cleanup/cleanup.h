/* cleanup: what a run that has ended left on its nodes is removed there, once all of it is here.
 *
 * Of each attempt and node: its folder where the journal is in the store to its last line,
 * `released`; its checkpoints but for those that are not here. (An agent that is about to leave is
 * waited for over there.) What a lost node has stays, and everything where processes were left.
 * Before the end is in the store: nobody resumes the run meanwhile, and where this supervisor dies
 * the next one comes here again and finds less to do: what is done has the file `tidied` beside its
 * place here. What cannot be removed, or not in time, stays and is reported, and the run ends all
 * the same.
 *
 * Nodes at once, on threads of libuv's pool; the attempts of one node one after the other.
 *
 * Ownership  free once the loop has run dry
 * Threads    the loop's
 */
#ifndef DT_CLEANUP_CLEANUP_H
#define DT_CLEANUP_CLEANUP_H

#include <stdbool.h>
#include <uv.h>

#include "store/store.h"

typedef struct dt_cleanup dt_cleanup;

typedef struct dt_cleanup_calls {
    bool (*is_over)(void *context);                   /* the session ends: nothing more is told */
    bool (*is_lost)(void *context, const char *node); /* ranks may live there, and nobody answers */
    void (*settled)(void *context);                   /* all is done */
} dt_cleanup_calls;

/* Borrowed, and longer-lived. */
typedef struct dt_cleanup_setup {
    uv_loop_t *loop;
    dt_store *store;
    const char *run, *folder; /* runs/ID */
    int64_t attempt;          /* the last one */
} dt_cleanup_setup;

dt_cleanup *dt_cleanup_open(const dt_cleanup_setup *setup, const dt_cleanup_calls *calls,
                            void *context);
/* The run ends, and no attempt follows: begins at the first call, and says whether it is over. */
bool dt_cleanup_is_done(dt_cleanup *cleanup);
void dt_cleanup_cancel(dt_cleanup *cleanup); /* soon; accepts NULL */
void dt_cleanup_free(dt_cleanup *cleanup);   /* accepts NULL */

#endif
