/* job: a job of Slurm's: submitted, looked at, ended.
 *
 * A job of ours only holds its nodes: its script does nothing. Agents come by srun
 * (transport/slurm.c), so that the supervisor, the store and every command stay on the machine that
 * launched, whose files the nodes need not see.
 *
 * Errors  tool.h's; what Slurm refuses is DT_ERR_UNSUPPORTED with its words
 * Threads any
 */
#ifndef DT_SLURM_JOB_H
#define DT_SLURM_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/strbuf.h"

typedef enum dt_slurm_phase {
    DT_SLURM_WAITS, /* pending, or its nodes are being made ready or taken back */
    DT_SLURM_RUNS,
    DT_SLURM_ENDED
} dt_slurm_phase;

typedef struct dt_slurm_job {
    int64_t job;
    dt_slurm_phase phase;
    char state[32];   /* Slurm's own word: "PENDING"; "" where it has forgotten the job */
    char reason[128]; /* why it waits: "Resources" */
    char nodes[4096]; /* "gpu[01-04]" */
} dt_slurm_job;

dt_status dt_slurm_job_look(dt_slurm_job *out, int64_t job, dt_error *err);

/* "Slurm job 12 was cancelled", "... waits: Resources (nothing is free)": one clause. */
void dt_slurm_job_words(dt_strbuf *out, const dt_slurm_job *job);

typedef struct dt_slurm_wish {
    const char *name;
    int64_t nodes, tasks_per_node, cpus_per_task;
    int64_t gpus_per_node;      /* 0: none, or the options say it */
    const char *const *options; /* [count] the recipe's, for sbatch; ours win */
    int64_t option_count;
} dt_slurm_wish;

/* try_only: whether Slurm would take it; *job is left alone. */
dt_status dt_slurm_job_submit(int64_t *job, const dt_slurm_wish *wish, bool try_only,
                              dt_error *err);

/* Gives its nodes back; good where it has ended. good: it counts as completed, not as cancelled. */
dt_status dt_slurm_job_end(int64_t job, bool good, dt_error *err);

/* "gpu[01-04]" as its names, by Slurm itself. */
dt_status dt_slurm_hosts(const char ***out, int64_t *count, const char *list, dt_arena *arena,
                         dt_error *err);

#endif
