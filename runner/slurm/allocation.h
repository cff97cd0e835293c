/* allocation: reads the nodes of the Slurm job that this process runs in from its environment
 * (sbatch(1), salloc(1): OUTPUT ENVIRONMENT VARIABLES).
 *
 * Ownership  everything lives in the arena
 * Errors     DT_ERR_CORRUPT: a malformed variable; those of tool.h
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
    int64_t *tasks;     /* [count] requested on that host; 0: not requested */
    int64_t gpus;       /* of each host; -1: none allocated */
} dt_slurm_allocation;

bool dt_slurm_is_inside(void);
dt_status dt_slurm_allocation_read(dt_slurm_allocation *out, dt_arena *arena, dt_error *err);

/* Parses "2(x3),4" as {2,2,2,4}; false if the text is malformed or does not have `count` numbers. */
bool dt_slurm_counts(int64_t *out, int64_t count, const char *text);

#endif
