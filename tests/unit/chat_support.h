/* chat_support: a template of tests/golden/chat/ with a small tokenizer that has its control tokens. */
#ifndef DT_TESTS_UNIT_CHAT_SUPPORT_H
#define DT_TESTS_UNIT_CHAT_SUPPORT_H

#include "engine/chat/chat.h"

typedef struct chat_place {
    dt_bpe *bpe;
    dt_chat *chat;
    dt_chat_encoder *encoder;
    dt_arena arena;
    dt_error err; /* of the last encoding */
} chat_place;

/* Returns the tokenizer of tests/golden/tokens/qwen.json with more control tokens. */
dt_bpe *chat_tokenizer(void);
/* template: a name in tests/golden/chat/, or "text:..." */
void chat_place_open(chat_place *out, const char *template);
void chat_place_close(chat_place *place);
/* Encodes a line, in which ' stands for ". */
dt_status chat_place_encode(dt_chat_row *out, chat_place *place, const char *line,
                            const dt_chat_options *options);
int32_t chat_place_id(const chat_place *place, const char *token);

#endif
