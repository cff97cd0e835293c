/* team: threads that do the same thing, each for its own replica.
 *
 * Purpose    member 0 is the caller's thread, the others wait between two tasks
 * Threads    run from the thread that opened it
 * Errors     all members finish; the error of the lowest one that failed is given
 */
#ifndef DT_ENGINE_STRATEGY_THREAD_POOL_H
#define DT_ENGINE_STRATEGY_THREAD_POOL_H

#include <stdint.h>

#include "base/error.h"

typedef struct dt_team dt_team;
typedef dt_status (*dt_team_task)(void *self, int64_t member, dt_error *err);

dt_status dt_team_open(dt_team **out, int64_t members, dt_error *err);
/* task(self, m) for every member m; returns when all have. */
dt_status dt_team_run(dt_team *team, dt_team_task task, void *self, dt_error *err);
void dt_team_close(dt_team *team); /* accepts NULL */

#endif
