/* allocation: the nodes that Slurm gave the job that we run in, from the environment it sets
 * (sbatch(1), salloc(1): OUTPUT ENVIRONMENT VARIABLES).
 *
 * Ownership  everything lives in the arena
 * Errors     DT_ERR_CORRUPT where a variable is not what Slurm writes; tool.h's
 */
#ifndef DT_SLURM_ALLOCATION_H
#define DT_SLURM_ALLOCATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct dt_slurm_allocation {
    int64_t job, count;
    const char **hosts; /* [count] */
    int64_t *cpus;      /* [count] of the job on that host */
    int64_t *tasks;     /* [count] that were asked for there; 0: nothing was said */
    int64_t gpus;       /* of every host; -1: Slurm gave none */
} dt_slurm_allocation;

bool dt_slurm_is_inside(void);
dt_status dt_slurm_allocation_read(dt_slurm_allocation *out, dt_arena *arena, dt_error *err);

/* "2(x3),4" as {2,2,2,4}: exactly `count` numbers; false where it is not that. */
bool dt_slurm_counts(int64_t *out, int64_t count, const char *text);

#endif
