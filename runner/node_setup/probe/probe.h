/* probe: what all nodes of a recipe are and have, asked at once, and what is wrong with it.
 *
 * The first phase of `dtrun launch`, and all of `dtrun doctor`. The agent is put on a node that has
 * none (2 MB); nothing else is changed there.
 *
 * Ownership  strings live in the arena; dt_probe_release gives the documents back
 * Errors     a node that cannot be reached, or is not good, is a fault and not an error
 */
#ifndef DT_RUNNER_NODE_SETUP_PROBE_PROBE_H
#define DT_RUNNER_NODE_SETUP_PROBE_PROBE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"

#define DT_PROBE_ALL (-1) /* as many GPUs as it has; none is good too */

typedef struct dt_probe_wish {
    const char *const *nodes; /* [count] */
    int64_t count;
    const int64_t *devices; /* [count]: GPUs that each must have, or DT_PROBE_ALL; NULL: none */
    const int64_t *ranks;   /* [count]: that take rank_bytes of its memory each, where it uses no
                             * GPUs; NULL: none */
    int64_t rank_bytes;
    const char *interface; /* network.interface of the recipe, "" */
    int64_t disk_bytes;    /* that a node's folder must have room for */
    bool meet;             /* nodes connect to each other */
    bool outlive;          /* test whether a detached process outlives its login: two logins more */
    bool renew;            /* do not ask over a connection that earlier commands have left open */
    const atomic_bool *cancelled;
} dt_probe_wish;

typedef struct dt_node_probe {
    const char *node;
    json_t *facts;       /* remote_helper/probe.c; NULL: not reached */
    int64_t skew_ms;     /* its clock minus ours */
    double seconds;      /* that it took to answer */
    bool gpus;           /* its ranks will use GPUs: the engine that it needs has the GPU part */
    const char *address; /* that its ranks talk over; NULL where there is none */
} dt_node_probe;

typedef struct dt_probe_fault {
    const char *node;
    bool fatal;       /* a launch would fail; else it is only said */
    dt_status status; /* of what is fatal */
    const char *text; /* complete, with the remedy */
} dt_probe_fault;

typedef struct dt_probe_report {
    dt_node_probe *probes; /* [count], in the order of the wish */
    int64_t count;
    dt_probe_fault *faults;
    int64_t fault_count;
    int64_t fatal_count;
} dt_probe_report;

dt_status dt_probe_all(dt_probe_report *out, const dt_probe_wish *wish, dt_arena *arena,
                       dt_error *err);
void dt_probe_release(dt_probe_report *report); /* accepts one of zero bytes */

#endif
