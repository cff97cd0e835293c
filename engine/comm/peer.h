/* peer: identifies another process of this machine by number and start time, so that a reused
 * process number is not mistaken for it. */
#ifndef DT_ENGINE_COMM_PEER_H
#define DT_ENGINE_COMM_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_peer {
    int64_t pid;
    uint64_t start_ticks; /* start time of the process in ticks since boot */
} dt_peer;

dt_status dt_peer_self(dt_peer *out, dt_error *err);
/* False once it has ended, even before it is reaped. A stopped process is alive. */
bool dt_peer_alive(const dt_peer *peer);

#ifdef __cplusplus
}
#endif
#endif
