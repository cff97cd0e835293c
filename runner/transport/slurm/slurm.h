/* slurm: names of nodes of Slurm jobs, a job from its submission to its end, and the job that this process
 * runs in. All of it uses Slurm's own programs and environment.
 *
 * Threads  any
 * Errors   DT_ERR_UNSUPPORTED: a program is missing, or Slurm refuses; DT_ERR_IO: a program failed, with the last line
 *          of its stderr; DT_ERR_TIMEOUT
 */
#ifndef DT_RUNNER_TRANSPORT_SLURM_SLURM_H
#define DT_RUNNER_TRANSPORT_SLURM_SLURM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "runner/transport/transport.h"

/* name: parses the names of nodes of Slurm jobs.
 *
 *   slurm:12/gpu-a    machine gpu-a of job 12, as the transport expects it
 *   slurm:4#2         the second of four nodes of a job that is not submitted yet
 */

/* Accepts "slurm:JOB/HOST"; *host points into `name`. */
bool dt_slurm_name_is_host(const char *name, int64_t *job, const char **host);
/* Accepts "slurm:COUNT#NUMBER". *index counts from 0. */
bool dt_slurm_name_is_place(const char *name, int64_t *count, int64_t *index);

/* --- job: submits, inspects and ends a job. A job of dtrun only holds its nodes: its script does nothing.
 * Agents are started by srun (transport.c), so that supervisor, store and commands stay on the
 * launch machine, whose files the nodes need not see. */

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

/* Submits a job. try_only: only tests whether Slurm would accept it, and leaves *job alone. */
dt_status dt_slurm_job_submit(int64_t *job, const dt_place_wish *wish, bool try_only,
                              dt_error *err);

/* Ends a job and releases its nodes; succeeds if it has ended. good: Slurm records it as completed, not as
 * cancelled. */
dt_status dt_slurm_job_end(int64_t job, bool good, dt_error *err);

/* Expands "gpu[01-04]" to host names, with scontrol. */
dt_status dt_slurm_hosts(const char ***out, int64_t *count, const char *list, dt_arena *arena,
                         dt_error *err);

/* --- allocation: reads the nodes of the job that this process runs in from its environment (sbatch(1),
 * salloc(1): OUTPUT ENVIRONMENT VARIABLES). Everything lives in the arena; DT_ERR_CORRUPT: a malformed
 * variable. */

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

/* --- lifecycle: members of dt_transport (transport.h).
 *
 * runs/ID/slurm.json has the job of a run. The first node whose place is asked for submits it, and its progress shows
 * why the job waits; an ended job is DT_ERR_UNSUPPORTED with the reason of its end. */

/* In a job: its nodes by name, with their CPUs, tasks and GPUs. Elsewhere: "slurm:4#1" to "slurm:4#4", with one core
 * each, because the job must request a number. */
dt_status dt_slurm_expand(dt_lent_nodes *out, int64_t count, dt_arena *arena, dt_error *err);
dt_status dt_slurm_place(const char **node, const dt_place_request *request, dt_arena *arena,
                         dt_error *err);
dt_status dt_slurm_start(const dt_start_request *request, dt_arena *arena, dt_error *err);
void dt_slurm_remove(const char *run_folder, bool good);

#endif
