/* node_setup: prepares a node before its agent is started, and fetches files from it afterwards.
 *
 * A node has sshd (or is this machine, or belongs to a Slurm allocation) and nothing of dtrun; all communication uses
 * commands of runner/transport/transport.h. prepare.c runs the steps for one node:
 *
 *   bootstrap.c  copies the agent, which does the rest on the node (remote_helper/)
 *   probe/       looks at system, devices, memory, disk, clock, cache and connections
 *   bundle.c     copies engine and libraries once, by content hash, but not for a command
 *   transfer/    copies data and checkpoints both ways
 *   workdir/     sends the folder of a command
 *   forget.c     removes the files of an ended run
 *
 * Threads    every function blocks, and can be called from any thread, for different nodes at the same time; at most
 *            10 connections are being opened at once
 * Ownership  results live in the caller's arena
 * Errors     each with the node and the remedy. DT_ERR_PEER: the node cannot be reached, or the connection was lost
 *            (trying again can help). DT_ERR_UNSUPPORTED: permanent (architecture, glibc, noexec). DT_ERR_IO: no space
 */
#ifndef DT_RUNNER_NODE_SETUP_NODE_SETUP_H
#define DT_RUNNER_NODE_SETUP_NODE_SETUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "engine/checkpoint/digest.h"
#include "engine/checkpoint/name.h"

/* address: chooses the address of a machine that its ranks use.
 *
 * `interface` (network.interface of the recipe) is a name, an address or a subnet. If it is "", a node uses the address
 * at which ssh reached it, since other machines reach that address too, and the launch machine the address that
 * its connection to a node comes from. Link-local addresses are never used, since they are valid on one link only;
 * they only select an interface.
 *
 * All ranks of a run need addresses of one family, so a node offers one of each family if it can.
 *
 * Ownership  results live in the arena
 * Errors     DT_ERR_UNSUPPORTED naming the node and its addresses
 */

typedef struct dt_node_addresses {
    const char *node;
    const char *preferred; /* NULL: the node has none, and is left out */
    const char *other;     /* address of the other family; NULL: none */
} dt_node_addresses;

/* facts: of this node. seen_from: facts of another node, or NULL. */
dt_status dt_node_addresses_find(dt_node_addresses *out, const char *node, const json_t *facts,
                                 const json_t *seen_from, const char *interface, dt_arena *arena,
                                 dt_error *err);

/* Sets chosen[i] to the address of all[i] in the family that all nodes have. If they share both families,
 * it is the family that most nodes prefer, or IPv4 if equally many do. DT_ERR_UNSUPPORTED if they share
 * none, naming two nodes. */
dt_status dt_node_addresses_agree(const char **chosen, const dt_node_addresses *node_addresses,
                                  int64_t count, dt_error *err);

/* bootstrap: copies dtrun-agent to a node that has nothing of dtrun, and probes the node with it.
 *
 * Copying needs only a POSIX sh, cat, mkdir, chmod, mv and wc on the node. The agent is static and goes to
 * CACHE/agents/HASH; it does all further work on the node (remote_helper/remote_helper.h).
 *
 * Ownership  strings live in the arena, documents are the caller's
 * Threads    any
 * Errors     as at the head of this file
 */

/* The agent of this installation. */
typedef struct dt_bootstrap {
    const char *path; /* on this machine */
    char digest[DT_DIGEST_SIZE];
    dt_strbuf bytes;
    const char *seen; /* file that probes look for, as "sees"; NULL: none */
} dt_bootstrap;

dt_status dt_bootstrap_init(dt_bootstrap *out, dt_arena *arena, dt_error *err);
void dt_bootstrap_release(dt_bootstrap *bootstrap); /* accepts a zeroed struct */

/* Returns the object of remote_helper/probe.c for the node; copies the agent first if it is missing.
 * *skew_ms: the node's clock minus this machine's, within the time of the answer. bundle: "-" for none. */
dt_status dt_bootstrap_probe(json_t **facts, int64_t *skew_ms, const dt_bootstrap *bootstrap,
                             const char *node, const char *bundle, const atomic_bool *cancelled,
                             dt_error *err);

/* Returns the path of the agent on the node with these facts. */
dt_status dt_bootstrap_agent(const char **path, const dt_bootstrap *bootstrap, const char *node,
                             const json_t *facts, dt_arena *arena, dt_error *err);

/* --- layout, preparation, files */

/* Absolute paths on the node. Stored in attempt-N/node-K/place.json on the launch machine, for later supervisors. */
typedef struct dt_node_layout {
    const char *node;  /* ssh destination, "localhost", or a Slurm node */
    bool here;         /* this machine: nothing is copied, the run's own folders are used */
    const char *agent; /* dtrun-agent */
    const char
        *engine; /* dtrun-engine, whose run path finds its libraries; "": the run is a command */
    const char *folder;      /* folder of this run, attempt and node: the agent's DIR, mode 0700 */
    const char *checkpoints; /* folder of the run and all its attempts, on that node */
    const char *address;     /* address of the interface that ranks use; "127.0.0.1" for one node */
    const char *
        other_address; /* address of the other family, for nodes that share only that one; NULL: none */
    bool checkpoints_shared; /* `checkpoints` is the launch machine's folder (tested) */
    const char *workdir; /* folder of the command, if it was sent to the node; NULL: the recipe's */
    const char *
        saved; /* checkpoint of the program, if it was placed aside (transfer/stage.c); NULL: where it saved it */
    const char *setup; /* where the setup was done (remote_helper/setup.c); NULL: none */
    json_t *paths; /* {"/here/a.txt": ["/there/cache/..."]}: data with another path on the node */
} dt_node_layout;

typedef struct dt_prepare_request {
    const char *node, *run;
    int64_t attempt, node_index, node_count;
    const char *here;             /* runs/ID/attempt-N/node-K on the launch machine */
    const char *checkpoints_here; /* runs/ID/checkpoints */
    const json_t *plan;           /* plan.h's document */
    const atomic_bool *cancelled; /* set from another thread to make the call fail soon */
    /* Called from the calling thread: "copying the engine: 12 of 40 MB". */
    void (*progress)(void *context, const char *text);
    void *context;
} dt_prepare_request;

dt_status dt_node_prepare(dt_node_layout *out, const dt_prepare_request *request, dt_arena *arena,
                          dt_error *err);

dt_status dt_node_layout_write(const dt_node_layout *layout, const char *here, dt_error *err);
#define DT_NODE_LAYOUT_FILE "place.json"
dt_status dt_node_layout_parse(dt_node_layout *out, const char *text, dt_arena *arena,
                               dt_error *err);
/* Reads place.json from `here`. DT_ERR_NOT_FOUND: it was not written. */
dt_status dt_node_layout_read(dt_node_layout *out, const char *here, dt_arena *arena,
                              dt_error *err);

/* Returns the plan for the node's engine, with the node's paths in directory, shared, resume_from and data. New
 * reference. */
json_t *dt_node_plan(const json_t *plan, const dt_node_layout *layout, bool all_shared);

/* Returns the argv that runs `words` on the node (words[0] is an absolute path on the node), with stdin and stdout
 * connected. renew: does not use an existing connection, which could be stuck. */
dt_status dt_node_command(const char ***argv, const char *node, const char *const *words,
                          bool renew, dt_arena *arena, dt_error *err);

/* Returns the argv of a probe, whose exit code is a dt_contact (transport/transport.h). */
dt_status dt_node_probe_command(const char ***argv, const char *node, const char *const *words,
                                dt_arena *arena, dt_error *err);

typedef struct dt_gather_request {
    const dt_node_layout *layouts; /* [count] */
    int64_t count;
    const char *name,
        *digest; /* name of the checkpoint, and digest of its index (event `checkpoint`) */
    const char *checkpoints_here; /* runs/ID/checkpoints */
    const json_t *plan;           /* its recipe has the rules for old checkpoints */
    const atomic_bool *cancelled;
} dt_gather_request;

/* Copies the checkpoint from nodes that do not share the folder into checkpoints_here, checks digests, and writes
 * `complete` last; then removes checkpoints that the recipe's rules do not keep. Resumable; succeeds if the checkpoint
 * is already complete. name: its local name (DT_CHECKPOINT_NAME_SIZE bytes). DT_ERR_NOT_FOUND: the nodes have
 * removed it. */
dt_status dt_nodes_gather(char *name, const dt_gather_request *request, dt_error *err);

/* Removes the folder of the attempt on the node and, on a node with its own checkpoints, the checkpoints
 * that `home` names, one per line; and of a command's folder what was sent. *kept: names of the checkpoints
 * that stay; *files: "12 files (3.4 MB) in PATH: NAMES" that the command wrote, and the line of a recipe
 * that brings them, or nothing. The caller must have copied the contents of the attempt's folder. Succeeds
 * if nothing is there; does nothing for this machine. */
dt_status dt_node_forget(dt_strbuf *kept, dt_strbuf *files, const dt_node_layout *layout,
                         const char *home, const atomic_bool *cancelled, dt_error *err);

/* Removes all that an ended run has on the node, with the files of its command; copies the agent first if
 * it is missing. Does nothing for this machine. DT_ERR_IO: an agent still serves the run, or a file cannot
 * be removed. */
dt_status dt_node_wipe(const dt_node_layout *layout, dt_error *err);

/* Tests whether the transport of `node` would lend the nodes of this plan; asks for none. */
dt_status dt_nodes_try_place(const json_t *plan, const char *node, int64_t nodes, dt_arena *arena,
                             dt_error *err);

#endif
