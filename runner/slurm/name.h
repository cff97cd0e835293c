/* name: parses the names of nodes of Slurm jobs.
 *
 *   slurm:12/gpu-a    machine gpu-a of job 12, as the transport expects it
 *   slurm:4#2         the second of four nodes of a job that is not submitted yet
 */
#ifndef DT_SLURM_NAME_H
#define DT_SLURM_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* Accepts "slurm:JOB/HOST"; *host points into `name`. */
bool dt_slurm_name_is_host(const char *name, int64_t *job, const char **host);
/* Accepts "slurm:COUNT#NUMBER". *index counts from 0. */
bool dt_slurm_name_is_place(const char *name, int64_t *count, int64_t *index);

#endif
