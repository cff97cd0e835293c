/* async_comm: runs collectives of gradients and parameters in device memory, concurrently with passes.
 *
 * Purpose    a separate communicator executes jobs in the order of their launch. All ranks must launch
 *            the same jobs in the same order: by the index of a unit, never by readiness
 * Order      a job starts after the device ops issued before it; ops issued after a wait see the job's
 *            result. A communicator that queues (NCCL) does this without blocking the host; for others a
 *            thread runs the collectives, and wait() returns when they are done
 * Ownership  the memory of a launched job must not be touched until the job was waited for
 * Threads    launch and wait from one thread; neither allocates memory
 * Errors     after the first error every launch and wait returns it; DT_ERR_COMM if a peer is lost
 */
#ifndef DT_ENGINE_STRATEGY_ASYNC_COMM_H
#define DT_ENGINE_STRATEGY_ASYNC_COMM_H

#include "engine/comm/comm.h"
#include "engine/device/device.h"

typedef struct dt_async_comm dt_async_comm;

/* Number of a job, from 1; 0 stands for a finished job. */
typedef int64_t dt_async_comm_ticket;

/* At most `capacity` jobs can be in progress. Takes *comm (dt_comm_open_device), on failure too. */
dt_status dt_async_comm_open(dt_async_comm **out, dt_comm *comm, dt_device *device,
                             int64_t capacity, dt_error *err);

/* Launch a collective, with the arguments of comm.h. ticket MAY be NULL. */
dt_status dt_async_comm_all_reduce(dt_async_comm *async, dt_async_comm_ticket *ticket, void *data,
                                   int64_t elems, dt_dtype dtype, dt_error *err);
dt_status dt_async_comm_reduce_scatter(dt_async_comm *async, dt_async_comm_ticket *ticket,
                                       void *out, const void *in, int64_t elems, dt_dtype dtype,
                                       dt_error *err);
dt_status dt_async_comm_all_gather(dt_async_comm *async, dt_async_comm_ticket *ticket, void *out,
                                   const void *in, size_t bytes, dt_error *err);
dt_status dt_async_comm_broadcast(dt_async_comm *async, dt_async_comm_ticket *ticket, void *data,
                                  size_t bytes, int64_t root, dt_error *err);

/* Wait until the job and all jobs launched before it are done, as seen by later ops. */
dt_status dt_async_comm_wait(dt_async_comm *async, dt_async_comm_ticket ticket, dt_error *err);
/* Wait on the host for all jobs. Returns an error if any failed. */
dt_status dt_async_comm_wait_all(dt_async_comm *async, dt_error *err);

/* bytes sent by finished jobs since it was opened */
int64_t dt_async_comm_sent_bytes(dt_async_comm *async);

/* Waits for the job in progress and drops the jobs after it. Accepts NULL. */
void dt_async_comm_close(dt_async_comm *async);

#endif
