/* progress: reads how far a run is: elapsed and remaining time, speed, evaluations, and the state of its
 * nodes. */
#ifndef DT_RUNNER_VIEW_RUNS_PROGRESS_H
#define DT_RUNNER_VIEW_RUNS_PROGRESS_H

#include "base/strbuf.h"
#include "runner/term/term.h"
#include "store/activity.h"
#include "store/store.h"

/* timing: computes the elapsed time, the time left and the speed of a run from the store.
 *
 * Formula    left = steps left / (steps per second over the last tenth of the run, at least 100
 *            steps), minus the time since the newest point. Pauses for evaluations and
 *            checkpoints that fall into the window count, as they will come again. Once the next
 *            point is overdue, the time left stays constant.
 * Unknown    speed and time left are NaN while no step can come, for example while a node does not respond
 * Units      seconds; NaN if unknown
 */

typedef struct dt_timing {
    dt_activity activity;
    double elapsed_seconds; /* of all attempts, without the time between them */
    double eta_seconds;
    double tokens_per_second; /* mean of an ended run; of the newest steps of an active one */
    const char *curve;        /* the curve of progress (store/activity.h) */
    double lines_per_second;  /* of an active run that processes lines, else NaN */
} dt_timing;

dt_status dt_timing_read(dt_timing *out, dt_store *store, const dt_run *run, int64_t now_ms,
                         dt_arena *arena, dt_error *err);

/* evaluations: reads the evaluations of a run, with all metrics of one step together.
 *
 * Ownership  the array lives in the arena that is passed
 */

#define DT_VALID_LOSS "valid_loss"
#define DT_VALID_BLEU "valid_bleu"

typedef struct dt_evaluation {
    int64_t attempt, step, time_ms;
    double loss, bleu; /* bleu: NaN if not measured */
} dt_evaluation;

/* Reads the evaluations after *after_step, oldest first, and advances *after_step to the last one. */
dt_status dt_evaluations_read(dt_evaluation **out, int64_t *count, int64_t *after_step,
                              dt_store *store, const char *run, dt_arena *arena, dt_error *err);
/* Adds "validation loss 1.9034  BLEU 21.30". */
void dt_evaluation_add(dt_strbuf *out, const dt_evaluation *evaluation);

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
