/* upkeep: checks the supervisor of a run while a command waits for the run. Starts a missing supervisor and finds
 * out why the run makes no progress, every two seconds.
 *
 * Errors  DT_ERR_IO if supervisors of the run end at once; then none is started any more and waiting is pointless
 */
#ifndef DT_RUNNER_UPKEEP_H
#define DT_RUNNER_UPKEEP_H

#include "store/store.h"

#define DT_UPKEEP_BYTES 1024

typedef struct dt_upkeep {
    double looked_seconds; /* 0: not yet */
    int64_t troubles;      /* consecutive checks that found a problem */
    char message[DT_UPKEEP_BYTES];
} dt_upkeep; /* starts zeroed */

/* *news: a sentence about the run's supervisor that differs from the last one, valid until the next
 * call; else NULL. A problem is reported if two checks in a row find one. */
dt_status dt_upkeep_look(const char **news, dt_upkeep *upkeep, const dt_run *run, dt_error *err);

#endif
