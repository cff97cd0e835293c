/* collection: brings files from nodes to this machine while the loop runs: checkpoints
 * (checkpoint_fetcher.c), and a command's files at the end of the run (collection.c).
 *
 * The files of the first node go to runs/ID/collected. Those of a later node go to runs/ID/collected-node-K, if the
 * first node does not have the same file. The folder on this machine, with all nodes that share it, counts as one
 * node. A path that exists on no node is reported. A transfer that fails, as on a full disk, fails the run, with the
 * files that are not here and where they are. If the supervisor dies, the next one starts over.
 *
 * Ownership  call free when the loop has no more handles
 * Threads    call from the loop's thread; the transfer is on a thread of libuv's pool
 */
#ifndef DT_RUNNER_SUPERVISOR_COLLECT_COLLECTION_H
#define DT_RUNNER_SUPERVISOR_COLLECT_COLLECTION_H

#include <stdbool.h>
#include <uv.h>

#include "base/json.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/protocol/message.h"

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

typedef struct dt_checkpoint_fetcher dt_checkpoint_fetcher;

typedef struct dt_checkpoint_fetcher_calls {
    bool (*is_over)(void *context);   /* the session is ending: the next one starts over */
    bool (*is_ending)(void *context); /* no rank is training any more: make fewer tries */
    /* The checkpoint is complete here; `message` has its final name. */
    void (*fetched)(void *context, const dt_message *message);
    /* The same for a checkpoint of a command's program. */
    void (*fetched_saved)(void *context, const dt_message *message);
    void (*dropped)(void *context, const dt_message *message, const char *why);
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

typedef struct dt_collection dt_collection;

typedef struct dt_collection_calls {
    bool (*is_over)(void *context); /* the session is ending: no more callbacks */
    void (*collected)(void *context, const char *text); /* a line about the result, for the log */
    void (*settled)(void *context);
} dt_collection_calls;

/* Borrowed; must outlive the collection. */
typedef struct dt_collection_setup {
    uv_loop_t *loop;
    const json_t *plan;
    const char *folder; /* runs/ID */
    int64_t node_count;
} dt_collection_setup;

dt_collection *dt_collection_open(const dt_collection_setup *setup,
                                  const dt_collection_calls *calls, void *context);
/* Starts the transfer at the first call, and returns whether it is finished. places: [node_count], zero for nodes that
 * cannot be asked; copied, but what they point to is borrowed. */
bool dt_collection_is_done(dt_collection *collection, const dt_node_layout *places);
/* Returns why files could not be brought; NULL: all are here. Lives as long as the collection. */
const char *dt_collection_problem(const dt_collection *collection);
void dt_collection_cancel(dt_collection *collection); /* takes effect soon; accepts NULL */
void dt_collection_free(dt_collection *collection);   /* accepts NULL */

#endif
