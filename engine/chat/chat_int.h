/* chat_int: what the files of engine/chat share. */
#ifndef DT_ENGINE_CHAT_INT_H
#define DT_ENGINE_CHAT_INT_H

#include "base/jinja/jinja.h"
#include "engine/chat/chat.h"

/* --- template.c: the templates of a folder, and its special tokens */

typedef struct dt_chat_template {
    char *path, *text; /* path: with the name of the template, if it has one */
    dt_jinja *jinja;
} dt_chat_template;

/* The kinds of tokens, by where the text can become one. */
typedef enum dt_chat_token {
    DT_CHAT_NOT_ADDED,
    DT_CHAT_ADDED, /* recognised everywhere */
    DT_CHAT_MARKER, /* not special, but the template writes it ("<tool_call>"): not in what users type */
    DT_CHAT_UNKNOWN, /* special, but ordinary text can become it too */
    DT_CHAT_CONTROL  /* special: only where the template writes it */
} dt_chat_token;

struct dt_chat {
    const dt_bpe *tokenizer;
    dt_chat_template main,
        tools;       /* tools: for a line with tools; its jinja is NULL if there is none */
    json_t *special; /* "bos_token": "<s>", ... */
    uint8_t *tokens; /* [ids]: dt_chat_token */
    int64_t token_count;
    int32_t end_of_text; /* the eos_token; -1: none */
    int64_t now;
};

dt_status dt_chat_find_templates(dt_chat *chat, const dt_chat_source *source, dt_error *err);
void dt_chat_template_release(dt_chat_template *template);
/* Reads bos_token and the others from tokenizer_config.json and special_tokens_map.json; *out is a new object. */
dt_status dt_chat_read_special(json_t **out, const char *folder, dt_error *err);

/* --- messages.c: checked messages as values of a template */

/* A number for each value of a message: 0 is the template. In its bits: message + 1, value, field. Values are numbered so
 * that one which is printed again can be told; 0: a list or a dict; values after the 254th share a number. */
enum { DT_CHAT_VALUES = 256, DT_CHAT_MESSAGES_MOST = 1 << 19 };

static inline uint32_t dt_chat_origin(int64_t message, dt_chat_field field, int value)
{
    return (uint32_t)(message + 1) << 11 | (uint32_t)value << 3 | (uint32_t)field;
}

static inline int32_t dt_chat_origin_message(uint32_t origin)
{
    return (int32_t)(origin >> 11) - 1;
}

static inline int dt_chat_origin_value(uint32_t origin)
{
    return (int)(origin >> 3) % DT_CHAT_VALUES;
}

static inline dt_chat_field dt_chat_origin_field(uint32_t origin)
{
    return (dt_chat_field)(origin & 7);
}

typedef struct dt_chat_message {
    bool assistant, has_parts; /* has_parts: the content is a list */
    float weight;
    size_t bytes[DT_CHAT_FIELDS]; /* of each field; of an assistant */
    bool blank;                   /* has nothing but white space */
} dt_chat_message;

typedef struct dt_chat_messages {
    dt_chat_message *items;
    size_t count, assistants;
} dt_chat_messages;

/* Checks the messages of a line in the form of DT_CHAT_MESSAGES, and sets the variables of a run. */
dt_status dt_chat_set_messages(dt_chat_messages *out, dt_jinja_run *run, const dt_chat *chat,
                               const json_t *line, bool prompts, dt_arena *arena, dt_error *err);
/* Returns whether the line has tools for the template. */
bool dt_chat_has_tools(const json_t *line);

/* --- align.c */

/* An added token that was recognised, and its bytes in the text. */
typedef struct dt_chat_anchor {
    int32_t id;
    size_t from, to;
} dt_chat_anchor;

typedef struct dt_chat_anchors {
    dt_chat_anchor *items;
    int64_t count, capacity;
} dt_chat_anchors;

/* Finds where the bytes of each token end in the text. Added tokens are certain; tokens whose bytes a normalizer changed
 * get places between those that are certain. */
void dt_chat_align(uint32_t *ends, const dt_bpe *tokenizer, dt_chat_anchors *anchors,
                   const int32_t *ids, size_t count, const char *text, size_t length,
                   dt_arena *arena);

/* --- mask.c */

/* Makes the runs of a row, whose text and ids are set, and the mask of its ids. */
dt_status dt_chat_mask(dt_chat_row *row, const dt_chat *chat, const dt_jinja *jinja,
                       const dt_jinja_output *rendered, const dt_chat_messages *messages,
                       const dt_chat_options *options, dt_arena *arena, dt_error *err);

#endif
