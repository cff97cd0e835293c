/* checkpoint_fetcher: copies checkpoints from nodes that do not share the checkpoint folder to this
 * machine, in the background.
 *
 * A command's program saves checkpoints too (node_setup/transfer/saved.h). They have a row already, and only the newest
 * that waits is brought here.
 *
 * Of dtrun's own engine, only a checkpoint that is complete on this machine gets a row, and only such a checkpoint is used by a
 * restart or resume. Checkpoints are fetched one at a time, in order, on a thread of libuv's pool. A failed
 * fetch is tried again; it is dropped if a newer checkpoint waits, or after too many tries.
 *
 * Ownership  call free when the loop has no more handles
 * Threads    call from the loop's thread
 */
#ifndef DT_COLLECT_CHECKPOINT_FETCHER_H
#define DT_COLLECT_CHECKPOINT_FETCHER_H

#include <uv.h>

#include "base/json.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/protocol/message.h"

typedef struct dt_checkpoint_fetcher dt_checkpoint_fetcher;

typedef struct dt_checkpoint_fetcher_calls {
    bool (*is_over)(void *context);   /* the session is ending: the next one starts over */
    bool (*is_ending)(void *context); /* no rank is training any more: make fewer tries */
    /* The checkpoint is complete here; `message` has its final name. */
    void (*here)(void *context, const dt_message *message);
    /* The same of a command's program. */
    void (*saved_here)(void *context, const dt_message *message);
    void (*let_go)(void *context, const dt_message *message, const char *why);
    void (*settled)(void *context); /* one checkpoint less is waiting */
} dt_checkpoint_fetcher_calls;

/* Borrowed; must outlive the fetcher. */
typedef struct dt_checkpoint_fetcher_setup {
    uv_loop_t *loop;
    const char *checkpoints; /* the plan's directory */
    const char *folder;      /* runs/ID */
    int64_t attempt;
    const json_t *plan;
    int64_t node_count;
} dt_checkpoint_fetcher_setup;

dt_checkpoint_fetcher *dt_checkpoint_fetcher_open(const dt_checkpoint_fetcher_setup *setup,
                                                  const dt_checkpoint_fetcher_calls *calls,
                                                  void *context);
/* places: [node_count], zero if unknown; copied, but what they point to is borrowed. */
void dt_checkpoint_fetcher_add(dt_checkpoint_fetcher *fetcher, const dt_message *message,
                               const dt_node_layout *places);
bool dt_checkpoint_fetcher_is_idle(const dt_checkpoint_fetcher *fetcher);
/* all that wait; takes effect soon */
void dt_checkpoint_fetcher_cancel(dt_checkpoint_fetcher *fetcher);
void dt_checkpoint_fetcher_close(dt_checkpoint_fetcher *fetcher); /* cancels; accepts NULL */
void dt_checkpoint_fetcher_free(dt_checkpoint_fetcher *fetcher);  /* accepts NULL */

#endif
