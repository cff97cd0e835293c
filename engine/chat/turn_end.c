/* turn_end: finds the token that ends a turn of the assistant. */
#include "base/json.h"
#include "engine/chat/chat.h"

dt_status dt_chat_turn_end(int32_t *out, const dt_chat *chat, dt_error *err)
{
    static const char line[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, "
                               "{\"role\": \"assistant\", \"content\": \"b\"}]}";
    json_t *json = json_loads(line, 0, NULL);
    dt_chat_options options = {.unchecked = false};
    dt_chat_encoder *encoder = NULL;
    dt_status st = DT_OK;
    dt_chat_row row;
    dt_arena arena;

    *out = -1;
    dt_arena_init(&arena, 0);
    DT_TRY(dt_chat_encoder_open(&encoder, chat, err));
    if (dt_chat_encode(&row, encoder, json, &options, &arena, NULL) != DT_OK)
        goto out; /* the template needs other roles, or more */
    for (size_t t = row.count, r = row.run_count; t-- > 0;) {
        if (!row.trained[t])
            continue;
        while (r > 0 && row.runs[r - 1].end >= row.ends[t])
            r--; /* the run that has the token's last byte */
        if (row.runs[r].field == DT_CHAT_TEMPLATE)
            *out = row.ids[t];
        break;
    }
out:
    json_decref(json);
    dt_chat_encoder_close(encoder);
    dt_arena_release(&arena);
    return st;
}
