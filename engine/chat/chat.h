/* chat: turns a conversation into text with the chat template of a model, and into ids of which it knows whether each
 * is trained.
 *
 * Text      the template is interpreted as in transformers' apply_chat_template (base/jinja/jinja.h). Each byte of the
 *           text keeps its origin: the template, or a field of a message
 * Trained   bytes from `content`, `reasoning_content` and `tool_calls` of assistant messages, and the template's text
 *           after each of them, up to and including the first special token, and the eos_token if that follows at
 *           once; nothing of it if there is none before the next message. An empty field counts, if it is
 *           printed: an empty answer has an end. If the template has {% generation %} blocks, both masks must
 *           agree on all text of messages and on the ends of turns. A value that is printed again after its end, such
 *           as the name of a tool above its result, is not trained
 * Ids       those of the whole text, without the tokens that a tokenizer puts around a text. A special token is
 *           recognised only where the template wrote it: one that a user typed becomes ordinary text. So is an added
 *           token that is not special but that the template writes, such as "<tool_call>", except in the fields of
 *           assistants, who write it themselves. A token that covers trained and other bytes is trained if its last
 *           byte is
 * Threads   a dt_chat is read-only; an encoder belongs to one thread
 * Errors    DT_ERR_USAGE for a conversation, naming the message and the field ("messages[2].content: ..."): the caller
 *           puts the file and the line in front. DT_ERR_UNSUPPORTED for a template, with its name and line.
 *           DT_ERR_NOT_FOUND: the folder has no template
 */
#ifndef DT_ENGINE_CHAT_CHAT_H
#define DT_ENGINE_CHAT_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "engine/tokens/bpe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_chat dt_chat;
typedef struct dt_chat_encoder dt_chat_encoder;

/* Where the template is found. Without a file: chat_template.jinja, additional_chat_templates/NAME.jinja,
 * `chat_template` of tokenizer_config.json (also a list of named ones), then chat_template.json, all in the folder. */
typedef struct dt_chat_source {
    const char *folder; /* of the model; also has the special tokens. NULL: there are none */
    const char *file; /* of a template (or a JSON file with 'chat_template'); NULL: the folder's */
    const char
        *name;   /* of a named template; NULL: "default", and "tool_use" for a line with tools */
    int64_t now; /* seconds since 1970, for templates that print the date; 0: when it is opened */
} dt_chat_source;

/* The tokenizer is borrowed until dt_chat_free. */
dt_status dt_chat_open(dt_chat **out, const dt_chat_source *source, const dt_bpe *tokenizer,
                       dt_error *err);
void dt_chat_free(dt_chat *chat);

/* Returns the path of the template, with its name if it has one ("models/x/tokenizer_config.json, template
 * 'default'"), and its text; borrowed. */
const char *dt_chat_template_path(const dt_chat *chat);
const char *dt_chat_template_text(const dt_chat *chat);

/* The form of a line. ShareGPT has `conversations` with `from` and `value`; Alpaca has `instruction`, `input`,
 * `output`. */
typedef enum dt_chat_form { DT_CHAT_MESSAGES, DT_CHAT_SHAREGPT, DT_CHAT_ALPACA } dt_chat_form;

const char *dt_chat_form_name(dt_chat_form form); /* "messages", "ShareGPT", "Alpaca" */
/* Recognises the form of a line. DT_ERR_USAGE if it has none of them, with what is expected. */
dt_status dt_chat_form_of(dt_chat_form *out, const json_t *line, dt_error *err);
/* Returns the messages of a line in the form of DT_CHAT_MESSAGES, a new reference: an object with `messages` and the
 * line's other keys. */
dt_status dt_chat_normalize(json_t **out, const json_t *line, dt_error *err);

/* Zeros: a conversation to train on. */
typedef struct dt_chat_options {
    bool prompts; /* the text ends with the prompt for an answer (add_generation_prompt) */
    bool
        continues; /* the text ends where the content of the last message ends, which will be continued */
    /* Accepts a message that the template leaves out, and masks that disagree: the text is for an answer, and nothing is
     * trained on it. */
    bool unchecked;
} dt_chat_options;

/* A field of a message that bytes come from. */
typedef enum dt_chat_field {
    DT_CHAT_TEMPLATE, /* the template's text */
    DT_CHAT_CONTENT,
    DT_CHAT_REASONING,
    DT_CHAT_TOOL_CALLS,
    DT_CHAT_OTHER, /* role, name, tools, documents, and other keys of the line */
    DT_CHAT_FIELDS
} dt_chat_field;

const char *dt_chat_field_name(dt_chat_field field); /* "template", "content", ... */

/* Bytes of one origin, from the end of the previous run to `end`. */
typedef struct dt_chat_run {
    uint32_t end;
    int32_t message; /* index; -1: of no message, as is the template's text */
    dt_chat_field field;
    bool trained;
} dt_chat_run;

/* All arrays are in the arena. */
typedef struct dt_chat_row {
    dt_chat_form form;
    const char *text; /* UTF-8, ends with a NUL that `length` does not count */
    size_t length;
    const dt_chat_run *runs;
    size_t run_count;

    size_t count; /* of ids */
    const int32_t *ids;
    const uint32_t *ends;   /* where each token's bytes end in the text */
    const uint8_t *trained; /* 1 for a token that is trained; 0 otherwise */
    /* The `weight` of the message that a trained token belongs to; 1 if the message has none. A token that is not trained,
     * as in a message with `"train": false`, has 0. */
    const float *weights;

    /* 1 for a token in a {% generation %} block; NULL if the template has none. */
    const uint8_t *generated;
    size_t marked_more; /* tokens of the template's text that only the blocks mark: not trained */

    size_t trained_count;        /* tokens that are trained; 0: nothing to learn from this line */
    size_t messages, assistants; /* messages; those of an assistant */
    size_t endless;              /* trained assistants after which no special token ends the turn */
    size_t field_bytes;          /* bytes of the trained fields of assistants */
    size_t dropped_bytes; /* those of them that the template left out, such as earlier thoughts */
} dt_chat_row;

/* The chat is borrowed until the encoder is closed. */
dt_status dt_chat_encoder_open(dt_chat_encoder **out, const dt_chat *chat, dt_error *err);
void dt_chat_encoder_close(dt_chat_encoder *encoder); /* accepts NULL */

/* Encodes one conversation, a JSON object in one of the three forms. */
dt_status dt_chat_encode(dt_chat_row *out, dt_chat_encoder *encoder, const json_t *line,
                         const dt_chat_options *options, dt_arena *arena, dt_error *err);

/* The token that ends an assistant's turn: the last one that is trained of a short conversation, if the
 * template writes it; -1: none. */
dt_status dt_chat_turn_end(int32_t *out, const dt_chat *chat, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
