/* progress: a count of what this process has done, by which who watches it tells a slow one from
 * one that hangs (runner/supervisor/policy/watchdog.h).
 *
 * It moves with every piece of work that takes a moment and cannot last long by itself: an op, a
 * unit of the model, a piece of a collective, a block of a checkpoint, a micro-step. Never while
 * something is waited for. What it counts is no promise, only that it moves.
 *
 * Ops of a card are counted when they are given to it.
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
