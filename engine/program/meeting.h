/* meeting: agrees with all ranks on a free port of the node of rank 0, for MASTER_PORT.
 *
 * Rank 0 tries ports from 20000 to 32767, below those that Linux gives to outgoing connections, whose remainder by 16
 * is that of the attempt: the port of a new attempt is another one than that of the last. The port stays bound until
 * dt_meeting_close, just before the program starts.
 */
#ifndef DT_ENGINE_PROGRAM_MEETING_H
#define DT_ENGINE_PROGRAM_MEETING_H

#include "engine/channel/events.h"

typedef struct dt_meeting {
    int64_t port;
    int held; /* socket of rank 0 that has the port; -1: none */
} dt_meeting;

/* All ranks call it. DT_ERR_TIMEOUT also if this rank is asked to stop. */
dt_status dt_meeting_open(dt_meeting *out, int64_t rank, int64_t world_size, int64_t attempt,
                          dt_events *events, dt_error *err);
void dt_meeting_close(dt_meeting *meeting);

#endif
