/* checkpoint_fetcher: a checkpoint of nodes that do not share its folder is brought here, in the
 * background.
 *
 * Only what is whole on this machine becomes a row, and is what a restart or resume resumes from.
 * One at a time, in their order, on a thread of libuv's pool. One that fails is tried again; it is
 * let go where a newer one waits, or after too many tries.
 *
 * Ownership  free once the loop has run dry
 * Threads    the loop's
 */
#ifndef DT_COLLECT_CHECKPOINT_FETCHER_H
#define DT_COLLECT_CHECKPOINT_FETCHER_H

#include <uv.h>

#include "base/json.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/protocol/message.h"

typedef struct dt_checkpoint_fetcher dt_checkpoint_fetcher;

typedef struct dt_checkpoint_fetcher_calls {
    bool (*is_over)(void *context);   /* the session ends: the next one begins anew */
    bool (*is_ending)(void *context); /* no rank trains any more: fewer tries */
    /* It is whole here, under the name that `message` now has. */
    void (*here)(void *context, const dt_message *message);
    void (*let_go)(void *context, const dt_message *message, const char *why);
    void (*settled)(void *context); /* one fewer waits */
} dt_checkpoint_fetcher_calls;

/* Borrowed, and longer-lived. */
typedef struct dt_checkpoint_fetcher_setup {
    uv_loop_t *loop;
    const char *checkpoints; /* the plan's directory */
    const json_t *plan;
    int64_t node_count;
} dt_checkpoint_fetcher_setup;

dt_checkpoint_fetcher *dt_checkpoint_fetcher_open(const dt_checkpoint_fetcher_setup *setup,
                                                  const dt_checkpoint_fetcher_calls *calls,
                                                  void *context);
/* places: [node_count], zero where nothing is known; copied, what they point to is borrowed. */
void dt_checkpoint_fetcher_add(dt_checkpoint_fetcher *fetcher, const dt_message *message,
                               const dt_node_layout *places);
bool dt_checkpoint_fetcher_is_idle(const dt_checkpoint_fetcher *fetcher);
void dt_checkpoint_fetcher_cancel(dt_checkpoint_fetcher *fetcher); /* all that wait; soon */
void dt_checkpoint_fetcher_close(dt_checkpoint_fetcher *fetcher);  /* cancels; accepts NULL */
void dt_checkpoint_fetcher_free(dt_checkpoint_fetcher *fetcher);   /* accepts NULL */

#endif
