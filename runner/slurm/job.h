/* job: submits, inspects and ends a Slurm job.
 *
 * A job of dtrun only holds its nodes: its script does nothing. Agents are started by srun (transport/slurm.c), so that
 * supervisor, store and commands stay on the launch machine, whose files the nodes need not see.
 *
 * Errors  those of tool.h; DT_ERR_UNSUPPORTED with Slurm's message if Slurm refuses the job
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
    DT_SLURM_WAITS, /* pending, or its nodes are being prepared or released */
    DT_SLURM_RUNS,
    DT_SLURM_ENDED
} dt_slurm_phase;

typedef struct dt_slurm_job {
    int64_t job;
    dt_slurm_phase phase;
    char state[32];   /* Slurm's word: "PENDING"; "" if Slurm has no record of the job */
    char reason[128]; /* why it waits: "Resources" */
    char nodes[4096]; /* "gpu[01-04]" */
} dt_slurm_job;

dt_status dt_slurm_job_look(dt_slurm_job *out, int64_t job, dt_error *err);

/* Appends one clause: "Slurm job 12 was cancelled (scancel)", "... waits: waiting for free resources (Resources)". */
void dt_slurm_job_words(dt_strbuf *out, const dt_slurm_job *job);

typedef struct dt_slurm_wish {
    const char *name;
    int64_t nodes, tasks_per_node, cpus_per_task;
    int64_t gpus_per_node;      /* 0: none, or set in the options */
    const char *const *options; /* [count] the recipe's, for sbatch; dtrun's own take precedence */
    int64_t option_count;
} dt_slurm_wish;

/* Submits a job. try_only: only tests whether Slurm would accept it, and leaves *job alone. */
dt_status dt_slurm_job_submit(int64_t *job, const dt_slurm_wish *wish, bool try_only,
                              dt_error *err);

/* Ends a job and releases its nodes; succeeds if it has ended. good: Slurm records it as completed, not as
 * cancelled. */
dt_status dt_slurm_job_end(int64_t job, bool good, dt_error *err);

/* Expands "gpu[01-04]" to host names, with scontrol. */
dt_status dt_slurm_hosts(const char ***out, int64_t *count, const char *list, dt_arena *arena,
                         dt_error *err);

#endif
