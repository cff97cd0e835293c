/* activity: publishes what this process is doing, to diagnose a hang from outside.
 *
 * A global of the process, like the log: the training thread sets the step and the phase,
 * and a thread that waits for other ranks registers the wait. The event thread reads
 * it to answer the agent's question (events.h), even while all other threads hang.
 *
 * Threads    any; no locks or allocations; an answer can be slightly out of date
 * Ownership  strings must live as long as the process
 */
#ifndef DT_ENGINE_CHANNEL_ACTIVITY_H
#define DT_ENGINE_CHANNEL_ACTIVITY_H

#include <stdint.h>

#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

void dt_activity_step(int64_t step);
void dt_activity_phase(const char *phase);
/* micro-steps count from 1 in each step */
void dt_activity_micro_step(int64_t micro_step, int64_t micro_steps);

/* Call before and after a wait for other ranks: ("all_reduce", "main", 1234, bytes); number: of the
 * collective on that communicator, for comparison between ranks. Returns the argument of
 * dt_activity_wait_end. */
int dt_activity_wait_begin(const char *what, const char *whom, int64_t number, int64_t bytes);
void dt_activity_wait_end(int place);

/* New reference: {"event":"where","step":12,"phase":"train","micro_step":2,"micro_steps":8,
 * "progress":1234567,"collective":"all_reduce comm/main #1234, 25.0 MB","seconds":12.3}: the
 * longest current wait; collective and seconds are null if there is none. progress: see progress.h. */
json_t *dt_activity_report(void);

#ifdef __cplusplus
}
#endif
#endif
