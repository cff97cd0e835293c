/* peer: another process of this machine, told apart from a later one with the same number by the
 * time of its start. */
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
    uint64_t start_ticks; /* since the machine's boot */
} dt_peer;

dt_status dt_peer_self(dt_peer *out, dt_error *err);
/* False once it has ended, also while nobody has waited for it. A stopped one is alive. */
bool dt_peer_alive(const dt_peer *peer);

#ifdef __cplusplus
}
#endif
#endif
