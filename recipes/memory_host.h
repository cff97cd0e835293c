/* memory_host: what a rank on CPUs holds beside the tensors of memory.h: the program, what matrix
 * products work in, and the segment that ranks of a node share.
 *
 * Measured, not derived, are two numbers of memory_host.c: the program, and what a thread that makes
 * products keeps. `cli.memory_forecast` holds the sum to what the system says of ranks.
 */
#ifndef DT_RECIPES_MEMORY_HOST_H
#define DT_RECIPES_MEMORY_HOST_H

#include "recipes/architecture/architecture.h"
#include "recipes/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a segment that ranks share, a slot (engine/comm/shm/segment.h). */
#define DT_MEMORY_SLOT_BYTES ((int64_t)512 << 10)

/* ranks->host; bytes of one rank. */
int64_t dt_memory_host_bytes(const dt_recipe *recipe, const dt_model_config *config,
                             const dt_memory_ranks *ranks);

#ifdef __cplusplus
}
#endif
#endif
