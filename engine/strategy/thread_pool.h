/* thread_pool: runs a task in several threads, one per replica.
 *
 * Purpose    member 0 is the caller's thread; the others wait between tasks
 * Threads    call dt_thread_pool_run from the thread that opened the pool
 * Errors     all members finish; returns the error of the lowest-numbered member that failed
 */
#ifndef DT_ENGINE_STRATEGY_THREAD_POOL_H
#define DT_ENGINE_STRATEGY_THREAD_POOL_H

#include <stdint.h>

#include "base/error.h"

typedef struct dt_thread_pool dt_thread_pool;
typedef dt_status (*dt_thread_pool_task)(void *self, int64_t member, dt_error *err);

dt_status dt_thread_pool_open(dt_thread_pool **out, int64_t members, dt_error *err);
/* Call task(self, m) for every member m; returns when all have finished. */
dt_status dt_thread_pool_run(dt_thread_pool *pool, dt_thread_pool_task task, void *self,
                             dt_error *err);
void dt_thread_pool_close(dt_thread_pool *pool); /* accepts NULL */

#endif
