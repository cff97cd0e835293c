/* command: one line from a supervisor, checked (runner/PROTOCOL.md, "Commands").
 *
 * Ownership  strings and objects are borrowed from `json`, which release gives back
 * Errors     DT_ERR_CORRUPT with a message that the agent sends back
 */
#ifndef DT_AGENT_COMMAND_H
#define DT_AGENT_COMMAND_H

#include "base/json.h"

typedef enum dt_command_kind {
    DT_COMMAND_ATTACH,
    DT_COMMAND_START,
    DT_COMMAND_RENDEZVOUS,
    DT_COMMAND_SIGNAL,
    DT_COMMAND_STOP,
    DT_COMMAND_ACK,
    DT_COMMAND_BYE,
    DT_COMMAND_KIND_COUNT
} dt_command_kind;

typedef struct dt_command {
    dt_command_kind kind;
    json_t *json;
    int64_t protocol, attempt, from; /* attach */
    const char *run;
    const char *engine; /* start */
    json_t *plan, *environment;
    int64_t node;
    const char *name; /* rendezvous */
    json_t *values;
    int64_t rank, signal; /* signal */
    double grace_seconds; /* stop */
    int64_t sequence;     /* ack */
} dt_command;

dt_status dt_command_parse(dt_command *out, const char *text, size_t length, dt_error *err);
void dt_command_release(dt_command *command); /* accepts one of zero bytes */

#endif
