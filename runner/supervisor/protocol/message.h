/* message: parses and checks one line from an agent (runner/PROTOCOL.md, "Events").
 *
 * An event of an unknown kind is stored as it is, and otherwise ignored.
 *
 * Ownership  `json` owns everything; release frees it
 * Errors     DT_ERR_CORRUPT: the connection is closed, never the run
 */
#ifndef DT_PROTOCOL_MESSAGE_H
#define DT_PROTOCOL_MESSAGE_H

#include <stdbool.h>

#include "base/json.h"

typedef enum dt_message_kind {
    /* numbered, from the journal */
    DT_MESSAGE_STARTED,
    DT_MESSAGE_READY,
    DT_MESSAGE_MEMORY,
    DT_MESSAGE_METRICS,
    DT_MESSAGE_PACE,
    DT_MESSAGE_PHASE,
    DT_MESSAGE_CHECKPOINT,
    DT_MESSAGE_CHECKPOINT_FAILED,
    DT_MESSAGE_EVALUATION,
    DT_MESSAGE_SAMPLES,
    DT_MESSAGE_CONFUSION,
    DT_MESSAGE_PART,
    DT_MESSAGE_RECORD,
    DT_MESSAGE_FAILED,
    DT_MESSAGE_FINISHED,
    DT_MESSAGE_DIAGNOSIS,
    DT_MESSAGE_LOG,
    DT_MESSAGE_EXITED,
    DT_MESSAGE_STOPPING,
    DT_MESSAGE_RELEASED,
    DT_MESSAGE_SYSTEM,
    DT_MESSAGE_UNKNOWN, /* stored, otherwise ignored */
    /* not numbered */
    DT_MESSAGE_HELLO,
    DT_MESSAGE_RENDEZVOUS,
    DT_MESSAGE_ALIVE,
    DT_MESSAGE_ERROR,
    DT_MESSAGE_KIND_COUNT
} dt_message_kind;

typedef struct dt_message {
    dt_message_kind kind;
    const char *name; /* name of the kind: static, or in `json` for an unknown kind */
    json_t *json;
    bool numbered;
    int64_t sequence, time_ms; /* if numbered */
    int64_t after;             /* number of the previous line if the numbers jump; else -1 */
    int64_t rank;              /* -1: none */
} dt_message;

dt_status dt_message_parse(dt_message *out, const char *text, size_t length, int64_t world_size,
                           dt_error *err);
void dt_message_release(dt_message *message); /* accepts a zeroed struct */

/* Fields that parse has checked. */
const char *dt_message_string(const dt_message *message, const char *key); /* "" if missing */
int64_t dt_message_int(const dt_message *message, const char *key, int64_t fallback);
/* Returns whether the checkpoint is one of a command's program: its path is absolute, and stays on the node. */
bool dt_message_is_program_checkpoint(const dt_message *message);
double dt_message_number(const dt_message *message, const char *key); /* NaN if missing */

#endif
