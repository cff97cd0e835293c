/* event: one line from a rank, checked before it goes into the journal.
 *
 * A rank says only what the engine's channel knows (engine/channel/events.h); that an event has the
 * fields that the supervisor builds on is seen here, next to the program that would be at fault.
 *
 * Errors  DT_ERR_CORRUPT with a message for the rank's log
 */
#ifndef DT_RUNNER_AGENT_RANK_EVENT_H
#define DT_RUNNER_AGENT_RANK_EVENT_H

#include "base/json.h"

/* New reference in *out; *kind is borrowed from it. */
dt_status dt_agent_event_parse(json_t **out, const char **kind, const char *text, size_t length,
                               dt_error *err);

#endif
