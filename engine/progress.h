/* progress: counts the work that this process has done, so that a watchdog can distinguish a slow process
 * from a hanging one (runner/supervisor/policy/watchdog.h).
 *
 * The count increases with every piece of work that takes some time but cannot last long: an op, a
 * unit of the model, a piece of a collective, a block of a checkpoint, a micro-step. It never increases
 * during a wait. The meaning of the number is not guaranteed, only that it increases.
 *
 * Ops of a GPU are counted when they are launched.
 *
 * Threads    any; a relaxed addition
 */
#ifndef DT_ENGINE_PROGRESS_H
#define DT_ENGINE_PROGRESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void dt_progress_made(void);
int64_t dt_progress_count(void);

#ifdef __cplusplus
}
#endif
#endif
