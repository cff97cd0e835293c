/* upkeep: what a command that waits for a run does for its supervisor: starts one that is missing, and finds out why the run
 * makes no progress, both every two seconds.
 *
 * Errors  DT_ERR_IO if supervisors of the run end at once, so that none is started any more: waiting is pointless
 */
#ifndef DT_RUNNER_UPKEEP_H
#define DT_RUNNER_UPKEEP_H

#include "store/store.h"

#define DT_UPKEEP_BYTES 1024

typedef struct dt_upkeep {
    double looked_seconds; /* 0: not yet */
    int64_t troubles;      /* looks in a row that found something wrong */
    char said[DT_UPKEEP_BYTES];
} dt_upkeep; /* of zero bytes at first */

/* *news: a sentence about the run's supervisor that differs from the last one, valid until the next call; else NULL. */
dt_status dt_upkeep_look(const char **news, dt_upkeep *upkeep, const dt_run *run, dt_error *err);

#endif
