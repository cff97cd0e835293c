/* activity: what this process does right now, for who asks from outside while it hangs.
 *
 * A blackboard of the process, as the log is: the training thread writes the step and the phase,
 * and whoever is about to wait for other ranks says so before and after. The event thread reads
 * it and answers the agent's question (events.h), also while all the others wait for ever.
 *
 * Threads    any; nothing locks or allocates, an answer may be a moment old
 * Ownership  strings live as long as the process
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
void dt_activity_micro_step(int64_t micro_step, int64_t micro_steps); /* from 1, of the step */

/* Around a wait for other ranks: ("all_reduce", "main", 1234, bytes); number: of the collectives of
 * that communicator, by which ranks can be compared. Gives what end takes. */
int dt_activity_wait_begin(const char *what, const char *whom, int64_t number, int64_t bytes);
void dt_activity_wait_end(int place);

/* That this process has waited so far, over all threads: waits that have ended. The rank that holds
 * up the others waits least. */
double dt_activity_waited_seconds(void);

/* New reference: {"event":"where","step":12,"phase":"train","micro_step":2,"micro_steps":8,
 * "progress":1234567,"collective":"all_reduce comm/main #1234, 25.0 MB","seconds":12.3}: the wait
 * that has lasted longest; collective and seconds are null where there is none. progress: of
 * progress.h. */
json_t *dt_activity_report(void);

#ifdef __cplusplus
}
#endif
#endif
