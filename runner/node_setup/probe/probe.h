/* probe: probes all nodes of a recipe at once, and lists their faults.
 *
 * This is the first phase of `dtrun launch`, and all of `dtrun doctor`. It copies the agent (2 MB) to nodes that lack
 * it, and changes nothing else there.
 *
 * Ownership  strings live in the arena; dt_probe_release frees the documents
 * Errors     an unreachable or unsuitable node is a fault, not an error
 */
#ifndef DT_RUNNER_NODE_SETUP_PROBE_PROBE_H
#define DT_RUNNER_NODE_SETUP_PROBE_PROBE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/memory.h"

#define DT_PROBE_ALL (-1) /* all GPUs of the node, which can be none */

typedef struct dt_probe_wish {
    const char *const *nodes; /* [count] */
    int64_t count;
    const int64_t *devices; /* [count]: GPUs that each must have, or DT_PROBE_ALL; NULL: none */
    const int64_t *ranks;   /* [count]: ranks that need rank_bytes of memory each, on nodes without
                             * GPUs; NULL: none */
    int64_t rank_bytes;
    const char *interface; /* network.interface of the recipe, "" */
    int64_t disk_bytes;    /* free space that a node's folder needs */
    bool command;          /* the ranks are programs of the user: nodes need no engine */
    const char *seen;      /* file that each node looks for, as the fact "sees"; NULL: none */
    bool meet;             /* test the connections between nodes */
    bool outlive; /* test whether a detached process outlives its login; needs two more logins */
    bool renew;   /* do not use connections that earlier commands have left open */
    const atomic_bool *cancelled;
} dt_probe_wish;

typedef struct dt_node_probe {
    const char *node;
    json_t *facts;       /* remote_helper/probe.c; NULL: not reached */
    int64_t skew_ms;     /* its clock minus this machine's */
    double seconds;      /* time until it answered */
    bool gpus;           /* its ranks will use GPUs: an engine needs its GPU part */
    const char *address; /* the address that its ranks use; NULL: none */
} dt_node_probe;

typedef struct dt_probe_fault {
    const char *node;
    bool fatal;       /* a launch would fail; else a warning */
    dt_status status; /* status of a fatal fault */
    const char *text; /* complete message, with the remedy */
} dt_probe_fault;

typedef struct dt_probe_report {
    dt_node_probe *probes; /* [count], in the order of the wish */
    int64_t count;
    bool command; /* of the wish */
    dt_probe_fault *faults;
    int64_t fault_count;
    int64_t fatal_count;
} dt_probe_report;

dt_status dt_probe_all(dt_probe_report *out, const dt_probe_wish *wish, dt_arena *arena,
                       dt_error *err);
void dt_probe_release(dt_probe_report *report); /* accepts a zeroed struct */

/* --- gpus.c: what uses the GPUs of a node, [{"gpu", "who", "run", "owner"}] (remote_helper/gpu_claims.h) */

/* Returns false to end the watch. */
typedef bool dt_gpu_uses_fn(void *context, const json_t *uses);
/* Calls `take` at the start, at each change and every ten seconds, until it returns false. The agent is copied first if
 * it is missing. DT_ERR_PEER: the connection was lost; DT_ERR_BUSY: `cancelled` was set. */
dt_status dt_node_gpus_watch(const char *node, dt_gpu_uses_fn *take, void *context,
                             const atomic_bool *cancelled, dt_error *err);

#endif
