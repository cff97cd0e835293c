/* prompter: makes the ids from which a model answers a conversation, with the template of its run.
 *
 * Answers  a conversation whose last message is the assistant's is continued within this message; all others end with
 *          the template's prompt for an answer
 * Ends     an answer ends where the template ends a turn of the assistant, too
 * Errors   DT_ERR_USAGE: a line that is not a conversation, or is longer than the context
 */
#ifndef DT_ENGINE_GENERATE_PROMPTER_H
#define DT_ENGINE_GENERATE_PROMPTER_H

#include "base/json.h"
#include "engine/chat/chat.h"
#include "engine/generate/text.h"

typedef struct dt_prompter {
    dt_chat *chat;
    dt_chat_encoder *encoder;
    dt_arena arena; /* of one conversation */
    int64_t context;
} dt_prompter;

/* Open the template, and add its end of a turn to from->ends. A zeroed prompter can be closed. */
dt_status dt_prompter_open(dt_prompter *out, dt_loaded *from, const dt_chat_source *source,
                           dt_error *err);
void dt_prompter_close(dt_prompter *prompter);

/* Append the ids of a conversation. *fits: they leave room for an answer in the context. */
dt_status dt_prompter_encode(dt_ids *out, bool *fits, dt_prompter *prompter, const json_t *line,
                             dt_error *err);
/* The same for a line of a file; DT_ERR_USAGE if it does not fit. */
dt_status dt_prompter_line(dt_ids *out, dt_prompter *prompter, const char *line, size_t length,
                           dt_error *err);

#endif
