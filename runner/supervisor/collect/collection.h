/* collection: brings files of a command (the recipe's `collect`) into the run's folder when the run ends.
 *
 * The files of the first node go to runs/ID/collected. Those of a later node go to runs/ID/collected-node-K, if the
 * first node does not have the same file. The folder on this machine, with all nodes that share it, counts as one
 * node. A path that exists on no node is reported. A transfer that fails, as on a full disk, fails the run, with the
 * files that are not here and where they are. If the supervisor dies, the next one starts over.
 *
 * Ownership  call free when the loop has no more handles
 * Threads    call from the loop's thread; the transfer is on a thread of libuv's pool
 */
#ifndef DT_COLLECT_COLLECTION_H
#define DT_COLLECT_COLLECTION_H

#include <stdbool.h>
#include <uv.h>

#include "base/json.h"
#include "runner/node_setup/node_setup.h"

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
