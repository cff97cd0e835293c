/* gather: everyone's JSON on those who want it, through broadcasts: it needs no shared file system.
 */
#ifndef DT_ENGINE_CHECKPOINT_GATHER_H
#define DT_ENGINE_CHECKPOINT_GATHER_H

#include "base/json.h"
#include "engine/comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Collective. all[world_size], zeroed by the caller, gets new references in rank order where it is
 * wanted, elsewhere nothing. */
dt_status dt_checkpoint_gather(json_t **all, const json_t *mine, bool wanted, dt_comm *comm,
                               dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
