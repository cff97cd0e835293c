/* agree: what one rank failed at, all ranks fail at. */
#ifndef DT_ENGINE_CHECKPOINT_AGREE_H
#define DT_ENGINE_CHECKPOINT_AGREE_H

#include "engine/comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Collective. DT_OK where `mine` is DT_OK on every rank; a rank whose own is good gets DT_ERR_IO
 * naming the one that failed. `doing` completes "rank 2 failed to ...". */
dt_status dt_checkpoint_agree(dt_comm *comm, dt_status mine, const char *doing, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
