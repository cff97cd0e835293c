#include "engine/generate/prompter.h"

#include <string.h>

static bool is_in(const dt_ids *ids, int32_t id)
{
    for (size_t i = 0; i < ids->count; i++)
        if (ids->items[i] == id)
            return true;
    return false;
}

static dt_status add_turn_end(dt_loaded *from, const dt_chat *chat, dt_error *err)
{
    dt_status st = DT_OK;
    int32_t turn_end;

    DT_TRY(dt_chat_turn_end(&turn_end, chat, err));
    if (turn_end >= 0 && !is_in(&from->ends, turn_end))
        DT_TRY(dt_ids_add(&from->ends, turn_end, err));
out:
    return st;
}

dt_status dt_prompter_open(dt_prompter *out, dt_loaded *from, const dt_chat_source *source,
                           dt_error *err)
{
    const dt_bpe *bpe = dt_tokenizer_bpe(from->tokenizer);
    dt_status st = DT_OK;

    *out = (dt_prompter){.context = from->recipe.batch.tokens};
    dt_arena_init(&out->arena, 0);
    if (bpe == NULL)
        DT_THROW(err, DT_ERR_USAGE,
                 "the run has no tokenizer with control tokens, so that it cannot read "
                 "conversations: give a --prompt instead");
    st = dt_chat_open(&out->chat, source, bpe, err);
    if (st == DT_ERR_NOT_FOUND) {
        dt_error_clear(err);
        st = DT_FAIL(err, DT_ERR_USAGE,
                     "the run has no chat template: it was not trained on conversations, nor did "
                     "its weights come with one (give --chat-template FILE)");
    }
    DT_TRY(st);
    DT_TRY(add_turn_end(from, out->chat, err));
    DT_TRY(dt_chat_encoder_open(&out->encoder, out->chat, err));
out:
    return st;
}

void dt_prompter_close(dt_prompter *prompter)
{
    dt_chat_encoder_close(prompter->encoder);
    dt_chat_free(prompter->chat);
    dt_arena_release(&prompter->arena);
    *prompter = (dt_prompter){0};
}

/* Whether the last message is the assistant's. */
static bool is_begun(const json_t *line)
{
    const json_t *messages, *last;
    json_t *plain = NULL;
    const char *role;
    bool out = false;

    if (dt_chat_normalize(&plain, line, NULL) != DT_OK)
        return false; /* dt_chat_encode reports the fault */
    messages = json_object_get(plain, "messages");
    last = json_array_get(messages, json_array_size(messages) - 1);
    role = json_string_value(json_object_get(last, "role"));
    out = role != NULL && strcmp(role, "assistant") == 0;
    json_decref(plain);
    return out;
}

dt_status dt_prompter_encode(dt_ids *out, bool *fits, dt_prompter *prompter, const json_t *line,
                             dt_error *err)
{
    bool begun = is_begun(line);
    dt_chat_options options = {.prompts = !begun, .continues = begun, .unchecked = true};
    dt_status st = DT_OK;
    dt_chat_row row;

    dt_arena_reset(&prompter->arena);
    DT_TRY(dt_chat_encode(&row, prompter->encoder, line, &options, &prompter->arena, err));
    for (size_t i = 0; i < row.count; i++)
        DT_TRY(dt_ids_add(out, row.ids[i], err));
    *fits = row.count > 0 && (int64_t)row.count < prompter->context;
out:
    return st;
}

dt_status dt_prompter_line(dt_ids *out, dt_prompter *prompter, const char *line, size_t length,
                           dt_error *err)
{
    json_error_t problem;
    json_t *json = json_loadb(line, length, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &problem);
    dt_status st = DT_OK;
    bool fits;

    if (json == NULL)
        DT_THROW(err, DT_ERR_USAGE, "not JSON: %s (column %d); a line has one conversation",
                 problem.text, problem.column);
    DT_TRY(dt_prompter_encode(out, &fits, prompter, json, err));
    if (!fits)
        DT_THROW(err, DT_ERR_USAGE,
                 "the conversation has %zu tokens, and the model's context (batch.tokens of the "
                 "run) is %lld: shorten it",
                 out->count, (long long)prompter->context);
out:
    json_decref(json);
    return st;
}
