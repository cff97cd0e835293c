/* straggler: finds the rank that slows down the others. A pure function of the waits that ranks report.
 *
 * Ranks wait for each other in the collectives of a step, so all take as long as the slowest; the slowest
 * itself waits least. Every rank reports from time to time how long it waits per step. Once all ranks have
 * reported, a finding is made and the next one begins:
 *
 *   rank      the rank that waits least
 *   seconds   how much longer the other ranks wait per step (their median)
 *
 * Threads    no locks of its own
 */
#ifndef DT_POLICY_STRAGGLER_H
#define DT_POLICY_STRAGGLER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dt_straggler_rank {
    bool heard; /* reported since the last finding */
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

/* ranks: rank_count entries that must outlive the straggler; overwritten. */
void dt_straggler_init(dt_straggler *straggler, dt_straggler_rank *ranks, int64_t rank_count);
/* Adds the wait of a rank per step. Returns true if all ranks have now reported, and fills in
 * *out. */
bool dt_straggler_add(dt_straggler *straggler, int64_t rank, double waited_seconds,
                      dt_straggler_finding *out);

#endif
