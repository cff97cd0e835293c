/* probe_int: declares what the files of this folder share. */
#ifndef DT_RUNNER_NODE_SETUP_PROBE_PROBE_INT_H
#define DT_RUNNER_NODE_SETUP_PROBE_PROBE_INT_H

#include "runner/node_setup/bootstrap.h"
#include "runner/node_setup/bundle.h"
#include "runner/node_setup/probe/probe.h"

/* --- parallel.c */
/* Calls `work` for 0 to count - 1, on at most 32 threads at once, and waits for all. */
void dt_probe_parallel(int64_t count, void (*work)(void *context, int64_t i), void *context);

/* --- report.c */
int64_t dt_probe_faults_max(int64_t nodes); /* capacity of `faults`; more are left out */
void dt_probe_add_fault(dt_probe_report *report, dt_arena *arena, const char *node, bool fatal,
                        dt_status status, const char *fmt, ...) DT_PRINTF(6, 7);

/* The bundles for nodes without and with GPUs. */
typedef struct dt_probe_bundles {
    dt_bundle plain, gpus;
} dt_probe_bundles;

/* faults.c: adds the faults that follow from the nodes' answers. */
void dt_probe_judge(dt_probe_report *report, const dt_probe_wish *wish,
                    const dt_probe_bundles *bundles, const json_t *here, dt_arena *arena);

/* outliving.c: adds a fault for each node that ends what a login has left running. */
void dt_probe_outliving(dt_probe_report *report, const dt_probe_wish *wish,
                        const dt_bootstrap *bootstrap, dt_arena *arena);

/* connectivity_check.c: tests connections in both directions between every pair of up to 8 nodes; between neighbours in a
 * ring for more nodes. */
void dt_probe_connectivity(dt_probe_report *report, const dt_probe_wish *wish,
                           const dt_bootstrap *bootstrap, dt_arena *arena);

#endif
