/* command: parses and checks one line from a supervisor (runner/PROTOCOL.md, "Commands").
 *
 * Ownership  strings and objects are borrowed from `json`, which release frees
 * Errors     DT_ERR_CORRUPT with a message that the agent sends back
 */
#ifndef DT_AGENT_COMMAND_H
#define DT_AGENT_COMMAND_H

#include "base/json.h"

typedef enum dt_agent_command_kind {
    DT_AGENT_COMMAND_ATTACH,
    DT_AGENT_COMMAND_START,
    DT_AGENT_COMMAND_RENDEZVOUS,
    DT_AGENT_COMMAND_SIGNAL,
    DT_AGENT_COMMAND_DIAGNOSE,
    DT_AGENT_COMMAND_STOP,
    DT_AGENT_COMMAND_ACK,
    DT_AGENT_COMMAND_ALIVE,
    DT_AGENT_COMMAND_BYE,
    DT_AGENT_COMMAND_KIND_COUNT
} dt_agent_command_kind;

typedef struct dt_agent_command {
    dt_agent_command_kind kind;
    json_t *json;
    int64_t protocol, attempt, from; /* attach */
    const char *run;
    const char *engine; /* start */
    const char *owner;  /* of GPUs, "": unknown */
    json_t *plan, *environment;
    int64_t node;
    double launcher_lost_seconds; /* 0: the ranks keep running without a supervisor */
    const char *name;             /* rendezvous */
    json_t *values;
    int64_t rank, signal; /* signal; diagnose: rank */
    double grace_seconds; /* stop */
    bool person;          /* stop: requested by a person */
    int64_t sequence;     /* ack */
} dt_agent_command;

dt_status dt_agent_command_parse(dt_agent_command *out, const char *text, size_t length,
                                 dt_error *err);
void dt_agent_command_release(dt_agent_command *command); /* accepts a zeroed struct */

#endif
