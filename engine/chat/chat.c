/* chat: opens the chat template of a model, and encodes conversations with it. */
#include "engine/chat/chat.h"

dt_status dt_chat_open(dt_chat **out, const dt_chat_source *source, const dt_bpe *tokenizer,
                       dt_error *err)
{
    (void)source;
    (void)tokenizer;
    *out = NULL;
    return DT_FAIL(err, DT_ERR_UNSUPPORTED, "chat templates are not supported yet");
}

void dt_chat_free(dt_chat *chat)
{
    (void)chat;
}

const char *dt_chat_template_path(const dt_chat *chat)
{
    (void)chat;
    return "";
}

const char *dt_chat_template_text(const dt_chat *chat)
{
    (void)chat;
    return "";
}

const char *dt_chat_field_name(dt_chat_field field)
{
    static const char *const names[DT_CHAT_FIELDS] = {"template", "content", "reasoning_content",
                                                      "tool_calls", "other"};

    return names[field];
}

dt_status dt_chat_encoder_open(dt_chat_encoder **out, const dt_chat *chat, dt_error *err)
{
    (void)chat;
    *out = NULL;
    return DT_FAIL(err, DT_ERR_UNSUPPORTED, "chat templates are not supported yet");
}

void dt_chat_encoder_close(dt_chat_encoder *encoder)
{
    (void)encoder;
}

dt_status dt_chat_encode(dt_chat_row *out, dt_chat_encoder *encoder, const json_t *line,
                         const dt_chat_options *options, dt_arena *arena, dt_error *err)
{
    (void)encoder;
    (void)line;
    (void)options;
    (void)arena;
    *out = (dt_chat_row){.text = ""};
    return DT_FAIL(err, DT_ERR_UNSUPPORTED, "chat templates are not supported yet");
}
