#include <string.h>

#include "engine/tokens/bpe_int.h"

#include "base/banned.h"

static bool is_set(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);

    return value != NULL && !json_is_null(value);
}

/* The first of these that it has: what a base model was trained with between documents. */
static void find_end_of_text(dt_bpe *bpe, const json_t *added)
{
    static const char *const names[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<|eos|>",
                                        "<eos>"};
    const json_t *token;
    size_t k;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        json_array_foreach((json_t *)added, k, token)
        {
            const char *content = json_string_value(json_object_get(token, "content"));

            if (content == NULL || strcmp(content, names[i]) != 0)
                continue;
            bpe->end_of_text = (int32_t)json_integer_value(json_object_get(token, "id"));
            return;
        }
}

dt_status dt_bpe_read_huggingface(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {
        "version",        "truncation", "padding", "normalizer",   "pre_tokenizer",
        "post_processor", "decoder",    "model",   "added_tokens", NULL};
    const json_t *model = json_object_get(json, "model"), *added;
    const char *version = json_string_value(json_object_get(json, "version"));
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_check_keys(json, "tokenizer.json", keys, err));
    bpe->ignores_limits = is_set(json, "truncation") || is_set(json, "padding");
    if (!json_is_object(model))
        DT_THROW(err, DT_ERR_CORRUPT, "'model' is missing: this is no tokenizer");
    if (version != NULL && strcmp(version, "1.0") != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'version' %.40s is not known here; 1.0 is", version);
    DT_TRY(dt_bpe_read_normalizer(bpe, json_object_get(json, "normalizer"), err));
    DT_TRY(dt_bpe_read_pre_tokenizer(bpe, json_object_get(json, "pre_tokenizer"), err));
    DT_TRY(dt_bpe_read_decoder(bpe, json_object_get(json, "decoder"), err));
    DT_TRY(dt_bpe_read_model(bpe, model, err));
    added = json_object_get(json, "added_tokens");
    DT_TRY(dt_bpe_read_added(bpe, added, json_object_get(model, "vocab"), err));
    DT_TRY(dt_bpe_read_post_processor(bpe, json_object_get(json, "post_processor"), err));
    find_end_of_text(bpe, added);
out:
    return st;
}
