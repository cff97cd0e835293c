/* event: parses and checks one line from a rank before it goes into the journal.
 *
 * A rank may send only the events of the engine's channel (engine/channel/events.h). The fields that the
 * supervisor relies on are checked here, next to the program that would be at fault.
 *
 * Errors  DT_ERR_CORRUPT with a message for the rank's log
 */
#ifndef DT_RUNNER_AGENT_RANK_EVENT_H
#define DT_RUNNER_AGENT_RANK_EVENT_H

#include "base/json.h"

/* *out: new reference; *kind is borrowed from it. */
dt_status dt_agent_event_parse(json_t **out, const char **kind, const char *text, size_t length,
                               dt_error *err);

#endif
