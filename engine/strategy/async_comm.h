/* async_comm: collectives of gradients and parameters, in the device's memory, beside the passes.
 *
 * Purpose    a communicator of its own takes jobs in the order in which they are launched. All
 *            ranks launch the same jobs in the same order: by the index of a unit, never by
 *            readiness
 * Order      a job begins when the device's ops that were given before it are done; ops that are
 *            given after a wait find what the job left. A communicator that queues (NCCL) does so
 *            without the host waiting at all; for any other a thread runs the collectives, and
 *            wait() returns when they are done
 * Ownership  the memory of a launched job belongs to this until it was waited for
 * Threads    launch and wait from one thread; nothing is allocated by either
 * Errors     the first one, given by every later launch and wait; DT_ERR_COMM when a peer is gone
 */
#ifndef DT_ENGINE_STRATEGY_ASYNC_COMM_H
#define DT_ENGINE_STRATEGY_ASYNC_COMM_H

#include "engine/comm/comm.h"
#include "engine/device/device.h"

typedef struct dt_async_comm dt_async_comm;

/* Counts jobs from 1; 0 is one that is over. */
typedef int64_t dt_async_comm_ticket;

/* At most `capacity` jobs are under way. Takes *comm (dt_comm_open_device), failing or not. */
dt_status dt_async_comm_open(dt_async_comm **out, dt_comm *comm, dt_device *device,
                             int64_t capacity, dt_error *err);

/* As the functions of comm.h that they call. ticket MAY be NULL. */
dt_status dt_async_comm_all_reduce(dt_async_comm *async, dt_async_comm_ticket *ticket, void *data,
                                   int64_t elems, dt_dtype dtype, dt_error *err);
dt_status dt_async_comm_reduce_scatter(dt_async_comm *async, dt_async_comm_ticket *ticket,
                                       void *out, const void *in, int64_t elems, dt_dtype dtype,
                                       dt_error *err);
dt_status dt_async_comm_all_gather(dt_async_comm *async, dt_async_comm_ticket *ticket, void *out,
                                   const void *in, size_t bytes, dt_error *err);
dt_status dt_async_comm_broadcast(dt_async_comm *async, dt_async_comm_ticket *ticket, void *data,
                                  size_t bytes, int64_t root, dt_error *err);

/* The job is done, and all that were launched before it, as far as ops can tell. */
dt_status dt_async_comm_wait(dt_async_comm *async, dt_async_comm_ticket ticket, dt_error *err);
/* All jobs, and the host waits in any case: an error where one of them failed. */
dt_status dt_async_comm_wait_all(dt_async_comm *async, dt_error *err);

int64_t dt_async_comm_sent_bytes(dt_async_comm *async); /* by what is done, since it was opened */

/* Waits for the job that is under way; those behind it are dropped. Accepts NULL. */
void dt_async_comm_close(dt_async_comm *async);

#endif
