/* thread_pool: threads that do the same thing, each for its own replica.
 *
 * Purpose    member 0 is the caller's thread, the others wait between two tasks
 * Threads    run from the thread that opened it
 * Errors     all members finish; the error of the lowest one that failed is given
 */
#ifndef DT_ENGINE_STRATEGY_THREAD_POOL_H
#define DT_ENGINE_STRATEGY_THREAD_POOL_H

#include <stdint.h>

#include "base/error.h"

typedef struct dt_thread_pool dt_thread_pool;
typedef dt_status (*dt_thread_pool_task)(void *self, int64_t member, dt_error *err);

dt_status dt_thread_pool_open(dt_thread_pool **out, int64_t members, dt_error *err);
/* task(self, m) for every member m; returns when all have. */
dt_status dt_thread_pool_run(dt_thread_pool *pool, dt_thread_pool_task task, void *self,
                             dt_error *err);
void dt_thread_pool_close(dt_thread_pool *pool); /* accepts NULL */

#endif
