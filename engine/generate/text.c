#include "engine/generate/text.h"

#include <stdlib.h>
#include <string.h>

const char *dt_text_end_name(dt_text_end end)
{
    static const char *const names[] = {[DT_TEXT_TOKENS] = "tokens",
                                        [DT_TEXT_END_OF_TEXT] = "end_of_text",
                                        [DT_TEXT_STOP] = "stop"};

    return names[end];
}

static void add_token(dt_text *t, int32_t token)
{
    t->tokens[t->count++] = token;
    if (t->seen != NULL)
        t->seen[token] = true;
}

dt_status dt_text_open(dt_text *out, const dt_loaded *from, const dt_text_rules *rules,
                       const char *prompt, size_t length, uint64_t seed, dt_error *err)
{
    bool asks = rules->sampling.penalty > 0 && rules->sampling.penalty != 1;
    dt_bpe_around around = {0};
    int32_t *tokens = NULL;
    int64_t count = 0;
    dt_status st = DT_OK;

    *out = (dt_text){.rules = rules, .from = from, .seed = seed};
    dt_strbuf_init(&out->text);
    if (length > 0)
        DT_TRY(dt_tokenizer_encode(&tokens, &count, from->tokenizer, prompt, length, err));
    if (count == 0) {
        free(tokens);
        DT_TRY(dt_loaded_first_tokens(&tokens, &count, from, err));
        if (count == 0)
            DT_THROW(err, DT_ERR_USAGE,
                     "the model was trained on token ids, so that no token is known to begin a "
                     "text: give the first ids, for example --prompt \"12 7\"");
    } else if (!rules->no_special) {
        around = dt_tokenizer_around(from->tokenizer);
    }
    out->tokens =
        calloc((size_t)(count + rules->tokens) + around.before_count, sizeof *out->tokens);
    if (asks)
        out->seen = calloc((size_t)dt_tokenizer_vocab(from->tokenizer), sizeof *out->seen);
    if (out->tokens == NULL || (asks && out->seen == NULL))
        DT_THROW(err, DT_ERR_NOMEM, "no memory for %lld tokens",
                 (long long)(count + rules->tokens));
    for (size_t i = 0; i < around.before_count; i++)
        add_token(out, around.before[i]);
    for (int64_t i = 0; i < count; i++)
        add_token(out, tokens[i]);
    if (from->ids && length > 0)
        dt_strbuf_add_char(&out->text, ' '); /* separates the next number */
out:
    free(tokens);
    return st;
}

void dt_text_close(dt_text *t)
{
    free(t->tokens);
    free(t->seen);
    dt_strbuf_release(&t->text);
    *t = (dt_text){0};
}

dt_status dt_text_logits(float *logits, const dt_text *t, dt_loaded *from, int64_t sequence,
                         dt_error *err)
{
    int64_t context = from->model->config.decoder.context, first, length;
    bool fits = t->count <= context;
    dt_batch batch = {0};
    dt_tensor *tokens = &batch.inputs[0];
    dt_status st = DT_OK;

    first = fits ? dt_model_extended(from->model, sequence) : t->count - context;
    length = t->count - first;
    *tokens = dt_tensor_2d(from->tokens_in.data, DT_I32, 1, length);
    DT_TRY(from->device.copy_in(&from->device, tokens->data, t->tokens + first,
                                (size_t)length * sizeof *t->tokens, err));
    if (fits)
        DT_TRY(dt_model_extend(from->model, sequence, tokens, logits, err));
    else
        DT_TRY(dt_model_logits(from->model, &batch, 1, logits, err));
out:
    return st;
}

static bool are_finite(const float *logits, int64_t vocab)
{
    float sum = 0;

    for (int64_t v = 0; v < vocab; v++)
        sum += logits[v] * 0; /* NaN for a NaN or an infinity */
    return sum == 0;
}

static bool ends(const dt_text *t, int32_t token)
{
    const dt_ids *all = &t->from->ends;

    for (size_t i = 0; i < all->count && !t->rules->past_end; i++)
        if (all->items[i] == token)
            return true;
    return false;
}

dt_status dt_text_take(dt_text *t, float *logits, dt_error *err)
{
    int64_t vocab = dt_tokenizer_vocab(t->from->tokenizer);
    dt_sampling sampling = t->rules->sampling;
    int32_t token;

    if (!are_finite(logits, vocab))
        return dt_loaded_diverged(err);
    sampling.seed = t->seed;
    token = dt_sample_token(logits, vocab, &sampling, t->seen, (uint32_t)t->added);
    t->added++;
    if (ends(t, token)) {
        t->end = DT_TEXT_END_OF_TEXT;
    } else {
        dt_tokenizer_decode(&t->text, t->from->tokenizer, token);
        add_token(t, token);
        if (dt_stops_find(&t->whole, &t->text, t->whole, &t->rules->stops))
            t->end = DT_TEXT_STOP;
    }
    t->done = t->end != DT_TEXT_TOKENS || t->added == t->rules->tokens;
    if (t->done)
        t->whole = t->text.length;
    return DT_OK;
}
