/* node_setup: what happens on a node before its agent is started, and what is fetched from it
 * after.
 *
 * A node has sshd (or is this machine, or belongs to a Slurm allocation) and nothing of ours. All
 * of it goes through transport.h's "argv that gives me stdin and stdout there".
 *
 *   prepare.c          the order of what follows, for one node
 *   bootstrap.c        the agent, which does the rest there (remote_helper/)
 *   probe/             what is there: system, devices, memory, disk, clock, cache; can nodes connect
 *   bundle.c           engine and libraries, put there once, by content hash
 *   transfer/
 *     compare.c        is a file there the one here (content.c: what it holds, remembered)
 *     stage_inputs.c   data files and the checkpoint that the node lacks (upload_file.c: one file,
 *                      by content hash, resumable)
 *     gather.c         a checkpoint's files from the nodes that wrote them, to the launch machine
 *                      (download.c: one file)
 *   forget.c           what a run that has ended left there is removed
 *
 * Threads    every function blocks and may be called from any thread, for different nodes at the
 *            same time; at most 10 connections are being opened at once
 * Ownership  results live in the arena that is passed
 * Errors     DT_ERR_PEER: cannot be reached or broke off (trying again may help);
 *            DT_ERR_UNSUPPORTED: never will (architecture, glibc, noexec); DT_ERR_IO: no space;
 *            each names the node and the remedy
 */
#ifndef DT_RUNNER_NODE_SETUP_NODE_SETUP_H
#define DT_RUNNER_NODE_SETUP_NODE_SETUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/checkpoint/name.h"

/* Where things lie on the node, absolute there. Written to and read from
 * attempt-N/node-K/place.json on the launch machine, so that a new supervisor knows it at once. */
typedef struct dt_node_layout {
    const char *node;        /* ssh destination, "localhost", or a Slurm node */
    bool here;               /* this machine: nothing is copied, folders are the run's own */
    const char *agent;       /* dtrun-agent */
    const char *engine;      /* dtrun-engine: a wrapper that finds its libraries beside it */
    const char *folder;      /* of this run, attempt and node: the agent's DIR, mode 0700 */
    const char *checkpoints; /* the run's, for all attempts, on that node */
    const char *address;     /* of the interface that ranks talk over; "127.0.0.1" for one node */
    const char *
        other_address; /* of the other family, for nodes that share only that one (address.h); NULL: none */
    bool checkpoints_shared; /* that folder is the launch machine's own (probed) */
    json_t *paths;           /* {"/here/a.txt": ["/there/cache/..."]}: data that lie elsewhere */
} dt_node_layout;

typedef struct dt_prepare_request {
    const char *node, *run;
    int64_t attempt, node_index, node_count;
    const char *here;             /* runs/ID/attempt-N/node-K on the launch machine */
    const char *checkpoints_here; /* runs/ID/checkpoints */
    const json_t *plan;           /* plan.h's document */
    const atomic_bool *cancelled; /* set from another thread: give up soon */
    /* From the calling thread: "copying engine: 12 of 40 MB". */
    void (*progress)(void *context, const char *text);
    void *context;
} dt_prepare_request;

dt_status dt_node_prepare(dt_node_layout *out, const dt_prepare_request *request, dt_arena *arena,
                          dt_error *err);

dt_status dt_node_layout_write(const dt_node_layout *layout, const char *here, dt_error *err);
#define DT_NODE_LAYOUT_FILE "place.json"
dt_status dt_node_layout_parse(dt_node_layout *out, const char *text, dt_arena *arena,
                               dt_error *err);
/* DT_ERR_NOT_FOUND where none was written. */
dt_status dt_node_layout_read(dt_node_layout *out, const char *here, dt_arena *arena,
                              dt_error *err);

/* The plan as that node's engine must see it: directory, shared, resume_from and data paths as they
 * are there. New reference. */
json_t *dt_node_plan(const json_t *plan, const dt_node_layout *layout, bool all_shared);

/* The argv that runs `words` on the node (words[0] absolute there), stdin and stdout connected.
 * renew: not over a connection that stands already, which may be stuck. */
dt_status dt_node_command(const char ***argv, const char *node, const char *const *words,
                          bool renew, dt_arena *arena, dt_error *err);

/* The argv whose exit code is a dt_contact (transport/contact.h). */
dt_status dt_node_probe_command(const char ***argv, const char *node, const char *const *words,
                                dt_arena *arena, dt_error *err);

typedef struct dt_gather_request {
    const dt_node_layout *layouts; /* [count] */
    int64_t count;
    const char *name, *digest;    /* of the event `checkpoint`: "step-00000100", its index's */
    const char *checkpoints_here; /* runs/ID/checkpoints */
    const json_t *plan;           /* its recipe says what stays */
    const atomic_bool *cancelled;
} dt_gather_request;

/* Copies the checkpoint of nodes that do not share the folder into checkpoints_here, checks
 * digests, writes `complete` last; then removes what the recipe's rules let go. Resumable; good
 * where it is whole there already. name: as it is called here, room for DT_CHECKPOINT_NAME_SIZE.
 * DT_ERR_NOT_FOUND where the nodes have let it go. */
dt_status dt_nodes_gather(char *name, const dt_gather_request *request, dt_error *err);

/* Removes the folder of that attempt and node there, and of a node with checkpoints of its own
 * those that `home` names, a line each. *kept: names of the others, which stay. What the folder has
 * must be here. Good where nothing is there, and for this machine, where nothing is done. */
dt_status dt_node_forget(dt_strbuf *kept, const dt_node_layout *layout, const char *home,
                         const atomic_bool *cancelled, dt_error *err);

#endif
