/* saved: brings checkpoints of a command's program from nodes that share no folder to the launch machine, and from
 * there to the nodes that lack them.
 *
 *   runs/ID/saved/step-N/         the checkpoint's file or folder, with the files of all nodes
 *   runs/ID/saved/step-N.node-K/  files of node K that differ from another node's of the same name
 *   runs/ID/saved/step-N.json     written last: {"saved": 1, "path", "step", "attempt", "time_ms", "bytes", "tree",
 *                                 "own": {NODE: {"folder": "step-N.node-K", "tree"}}}; path is that on the node
 *                                 of rank 0
 *
 * The newest two are kept. saved.c brings them here, stage.c to a node, into the folder of the program there;
 * a file of the program that is in the way is not replaced: then the checkpoint is placed in the attempt's folder.
 *
 * Threads    any, but one at a time for a run
 */
#ifndef DT_NODE_SETUP_TRANSFER_SAVED_H
#define DT_NODE_SETUP_TRANSFER_SAVED_H

#include "runner/node_setup/node_setup.h"
#include "runner/node_setup/workdir/tree.h"

#define DT_SAVED_FOLDER "saved"

/* A checkpoint in runs/ID/saved. */
typedef struct dt_saved {
    const char *path; /* on the node of rank 0 */
    int64_t step, attempt, time_ms, bytes;
} dt_saved;

typedef struct dt_saved_request {
    const dt_node_layout *layouts; /* [count], zero if unknown */
    int64_t count;
    const char *run_folder; /* runs/ID */
    const json_t *plan;
    dt_saved saved;
    int64_t quiet_ms; /* files of other nodes must not have changed for this long */
    const atomic_bool *cancelled;
} dt_saved_request;

/* Returns true if the node has its own folder of the command. */
bool dt_saved_is_far(const dt_node_layout *layout, const json_t *plan);
/* Lists what is in runs/ID/saved, newest first. */
void dt_saved_list(dt_saved **out, int64_t *count, const char *run_folder, dt_arena *arena);
/* Brings a checkpoint here, unless it is. DT_ERR_UNSUPPORTED: it is larger than the recipe allows; DT_ERR_TIMEOUT: a
 * node still writes it; DT_ERR_NOT_FOUND: the program removed it. */
dt_status dt_nodes_fetch_saved(const dt_saved_request *request, dt_error *err);

/* Returns the path of the program's checkpoint on the node with this folder of the command. path: of any node. */
const char *dt_saved_path_there(const char *path, const char *run, const char *folder_here,
                                const char *folder_there, dt_arena *arena);
/* Reads runs/ID/saved/step-N.json, which must be about this path. node: for its own files; NULL: those of all nodes.
 * *folder: has the files. Returns false if it is not there. */
bool dt_saved_tree(dt_tree *out, const char **folder, const char *run_folder, const char *path,
                   int64_t step, const char *node, dt_arena *arena);

#endif
