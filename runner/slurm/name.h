/* name: how a node of a Slurm job is called.
 *
 *   slurm:12/gpu-a    machine gpu-a of job 12: what the transport takes
 *   slurm:4#2         the second of four nodes of a job that the run has yet to submit
 */
#ifndef DT_SLURM_NAME_H
#define DT_SLURM_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* *host is the rest of `name`. */
bool dt_slurm_name_is_host(const char *name, int64_t *job, const char **host);
/* *count nodes, of which this one is *index, from 0. */
bool dt_slurm_name_is_place(const char *name, int64_t *count, int64_t *index);

#endif
