/* node_lines: prints the nodes of a run, one line each, and the rank that the others wait for.
 *
 *   gpu-a  running        8 ranks training
 *   gpu-b  running        8 ranks: 7 training, 1 failed
 *   gpu-c  running        8 ranks training   slowest: rank 17; the others wait 41 ms a step
 *   gpu-d  not reachable  8 ranks not responding
 *          no route to host
 *
 * Ownership  strings live in the arena that is passed
 */
#ifndef DT_RUNNER_VIEW_NODE_LINES_H
#define DT_RUNNER_VIEW_NODE_LINES_H

#include "runner/term/term.h"
#include "store/activity.h"

typedef struct dt_node_lines {
    dt_node *nodes;
    dt_rank *ranks;
    int64_t nodes_count, ranks_count;
    dt_activity activity;
    int64_t slowest_rank;   /* -1: unknown, or the others wait less than 5 % of a step */
    double slowest_seconds; /* time of a step that the others wait for it */
} dt_node_lines;

/* Reads the nodes of the newest attempt. */
dt_status dt_node_lines_read(dt_node_lines *out, dt_store *store, const dt_run *run,
                             const dt_activity *activity, dt_arena *arena, dt_error *err);
/* What the rank does, as text (dt_activity_of_rank). */
const char *dt_node_lines_rank(const dt_node_lines *lines, const dt_rank *rank);
/* Adds "slowest: rank 17; ...", or nothing if it is unknown. */
void dt_node_lines_add_slowest(dt_strbuf *out, const dt_term *term, const dt_node_lines *lines);
/* Adds at most `most` nodes (0: all). If there are more, healthy nodes are only counted. A long state is
 * wrapped below its node. */
void dt_node_lines_add(dt_strbuf *out, const dt_term *term, const dt_node_lines *lines,
                       int64_t most);

#endif
