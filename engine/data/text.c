#include "engine/data/text.h"

#include <stdlib.h>
#include <string.h>

#include "engine/progress.h"

/* Reports progress once per MiB. */
static inline void tell_progress(size_t at, size_t used)
{
    if (at >> 20 != (at + used) >> 20)
        dt_progress_made();
}

dt_status dt_text_scan(dt_char_set *set, int64_t *count, const char *path, const dt_mapping *text,
                       dt_error *err)
{
    size_t used;

    *count = 0;
    for (size_t at = 0; at < text->length; at += used) {
        uint32_t code = 0;

        used = dt_utf8_decode(&code, text->bytes + at, text->length - at);
        if (used == 0)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "'%s': byte %zu is not UTF-8 (0x%02x); convert the file (iconv -t "
                           "UTF-8), or set data.tokens: byte",
                           path, at, text->bytes[at]);
        if (code == 0)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "'%s': byte %zu is NUL, so that this is not UTF-8 text; convert the "
                           "file, or set data.tokens to what it holds",
                           path, at);
        tell_progress(at, used);
        dt_char_set_add(set, code);
        ++*count;
    }
    return DT_OK;
}

static void put_token(unsigned char *tokens, int width_bytes, int64_t index, uint32_t token)
{
    uint16_t two = (uint16_t)token;

    switch (width_bytes) {
    case 1:
        tokens[index] = (unsigned char)token;
        break;
    case 2:
        memcpy(tokens + index * 2, &two, sizeof(two));
        break;
    default:
        memcpy(tokens + index * 4, &token, sizeof(token));
        break;
    }
}

dt_status dt_text_encode(dt_token_piece *out, int64_t count, const char *path,
                         const dt_mapping *text, const dt_tokenizer *tokenizer, dt_error *err)
{
    dt_status st = DT_OK;
    int width_bytes = tokenizer->vocab <= 256 ? 1 : tokenizer->vocab <= 65536 ? 2 : 4;
    unsigned char *tokens = malloc((size_t)count * (size_t)width_bytes);
    int64_t done = 0;
    size_t used;

    if (tokens == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the %lld tokens of '%s'", (long long)count,
                 path);
    for (size_t at = 0; at < text->length && done < count; at += used) {
        uint32_t code = 0;
        int32_t token;

        used = dt_utf8_decode(&code, text->bytes + at, text->length - at);
        token = used == 0 ? -1 : dt_tokenizer_find(tokenizer, code);
        if (token < 0)
            DT_THROW(err, DT_ERR_RECIPE,
                     "'%s': the character '%.*s' (U+%04X) at byte %zu is not in the checkpoint's "
                     "vocabulary; resume with the text that it was trained on, or start a new run",
                     path, (int)used, (const char *)text->bytes + at, code, at);
        tell_progress(at, used);
        put_token(tokens, width_bytes, done++, (uint32_t)token);
    }
    memset(out, 0, sizeof(*out));
    out->path = path;
    out->width_bytes = width_bytes;
    out->count = done;
    out->tokens = out->memory = tokens;
    tokens = NULL;
out:
    free(tokens);
    return st;
}
