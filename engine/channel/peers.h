/* peers: reports how long a round trip to each other node takes, from the TCP connections of this process.
 *
 * The kernel measures round trips on every connection that sends (TCP_INFO), so nothing is sent for it. Connections
 * within a node are left out.
 *
 * Threads  any; a descriptor that another thread closes meanwhile is skipped
 */
#ifndef DT_ENGINE_CHANNEL_PEERS_H
#define DT_ENGINE_CHANNEL_PEERS_H

#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns a new reference: [{"local","remote","round_trip_seconds"}], the slowest connection between each two
 * addresses. */
json_t *dt_peers_report(void);

#ifdef __cplusplus
}
#endif

#endif
