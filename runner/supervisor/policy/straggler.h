/* straggler: which rank holds up the others. A pure function of what the ranks say.
 *
 * Ranks of one step wait for each other in collectives, so that each takes as long as the slowest;
 * but the slowest itself waits least. Every rank says now and then how long it waits in a step. Once
 * all have said so, a finding is made, and the next one begins:
 *
 *   rank      the one that waits least
 *   seconds   how much longer than it the others (their median) wait in a step
 *
 * Threads    none of its own
 */
#ifndef DT_POLICY_STRAGGLER_H
#define DT_POLICY_STRAGGLER_H

#include <stdbool.h>
#include <stdint.h>

/* Metrics that the supervisor adds of them: the rank, and the seconds. */
#define DT_METRIC_SLOWEST_RANK    "slowest_rank"
#define DT_METRIC_SLOWEST_SECONDS "slowest_seconds"

typedef struct dt_straggler_rank {
    bool heard; /* since the last finding */
    double waited_seconds;
    double sorted_seconds; /* scratch: [i] is the i-th shortest wait of all */
} dt_straggler_rank;

typedef struct dt_straggler {
    int64_t rank_count;
    dt_straggler_rank *ranks; /* borrowed */
} dt_straggler;

typedef struct dt_straggler_finding {
    int64_t rank;
    double seconds;
} dt_straggler_finding;

/* ranks: rank_count of them, which live as long; overwritten. */
void dt_straggler_init(dt_straggler *straggler, dt_straggler_rank *ranks, int64_t rank_count);
/* The rank waits so long in a step. True where that was the last of all, and *out is made. */
bool dt_straggler_add(dt_straggler *straggler, int64_t rank, double waited_seconds,
                      dt_straggler_finding *out);

#endif
