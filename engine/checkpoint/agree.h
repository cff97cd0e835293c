/* agree: makes an operation fail on all ranks if it failed on one. */
#ifndef DT_ENGINE_CHECKPOINT_AGREE_H
#define DT_ENGINE_CHECKPOINT_AGREE_H

#include "engine/comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Collective. DT_OK if `mine` is DT_OK on every rank. A rank that did not fail itself gets
 * DT_ERR_IO naming the failed rank. `doing` completes "rank 2 failed to ...". */
dt_status dt_checkpoint_agree(dt_comm *comm, dt_status mine, const char *doing, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
