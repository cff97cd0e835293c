/* team: threads that share the work of an op in generation, where an op takes a few microseconds.
 *
 * Work       pieces that any thread may take. Each thread begins with a range of its own, so that it reads weights in the
 *            order of memory, and then takes pieces from the end of others' ranges. A thread that does not run, because
 *            other programs use its processor, takes nothing, and costs nothing
 * Waiting    a thread that waits spins for a short time, then lets others run, then sleeps. While it spins it prefetches
 *            what it reads first of the next matrix, if the caller knows it
 * Results    which thread computes a piece is open: a piece writes only what is its own
 * Threads    dt_cpu_team_run is for the one thread that drives the device's ops
 */
#ifndef DT_ENGINE_OPS_CPU_TEAM_H
#define DT_ENGINE_OPS_CPU_TEAM_H

#include <stddef.h>
#include <stdint.h>

typedef struct dt_cpu_team dt_cpu_team;

/* Computes a piece. thread: from 0 to the number of threads - 1, for scratch memory. */
typedef void dt_cpu_piece(void *self, int thread, int64_t piece);

#define DT_CPU_TEAM_PIECES 4096 /* most pieces of a call */

/* Returns NULL without memory; with fewer threads if the system refuses more. */
dt_cpu_team *dt_cpu_team_new(int threads);
void dt_cpu_team_free(dt_cpu_team *team); /* accepts NULL */

/* Memory that is read after a call: `bytes` bytes, of which each thread reads its share. */
typedef struct dt_cpu_coming {
    const char *data;
    size_t bytes;
} dt_cpu_coming;

/* Computes all pieces, and returns when they are done. coming: prefetched by threads that wait; no data: nothing. */
void dt_cpu_team_run(dt_cpu_team *team, dt_cpu_piece *run, void *self, int64_t pieces,
                     dt_cpu_coming coming);

#endif
