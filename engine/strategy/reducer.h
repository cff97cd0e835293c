/* reducer: sums buckets of gradients over the ranks beside the backward pass.
 *
 * Purpose    one communication thread with its own communicator takes buckets in the order in
 *            which they are launched. All ranks launch the same buckets in the same order: by
 *            index, never by readiness
 * Ownership  a launched bucket belongs to the reducer until dt_reducer_wait returns
 * Threads    launch and wait from one thread; nothing is allocated by either
 * Errors     the first one, given by every later launch and wait; DT_ERR_COMM when a peer is gone
 */
#ifndef DT_ENGINE_REDUCER_H
#define DT_ENGINE_REDUCER_H

#include "engine/comm/comm.h"

typedef struct dt_reducer dt_reducer;

/* At most `capacity` buckets are launched between two waits. Takes *comm, failing or not. */
dt_status dt_reducer_open(dt_reducer **out, dt_comm *comm, int64_t capacity, dt_error *err);

dt_status dt_reducer_launch(dt_reducer *reducer, float *data, int64_t elems, dt_error *err);
/* All that was launched is summed. */
dt_status dt_reducer_wait(dt_reducer *reducer, dt_error *err);

int64_t dt_reducer_sent_bytes(dt_reducer *reducer); /* since it was opened */

/* Waits for the bucket that is under way; those behind it are dropped. Accepts NULL. */
void dt_reducer_close(dt_reducer *reducer);

#endif
