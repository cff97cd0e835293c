#include "engine/generate/generate.h"

#include <stdlib.h>
#include <string.h>

#include "engine/generate/loaded.h"

#include "base/banned.h"

typedef struct generator {
    dt_loaded from;
    dt_model_text text;
    int32_t *all; /* prompt and what was added, host */
    int64_t count, prompt_count;
    bool *seen;    /* (V): tokens of the text; NULL where nobody asks */
    float *logits; /* (V) */
} generator;

static dt_status make_room(generator *g, const dt_generate_options *options, dt_error *err)
{
    size_t room = (size_t)(g->prompt_count + options->tokens);

    g->all = calloc(room, sizeof(*g->all));
    g->logits = calloc((size_t)g->text.vocab, sizeof(*g->logits));
    if (options->sampling.penalty > 0 && options->sampling.penalty != 1)
        g->seen = calloc((size_t)g->text.vocab, sizeof(*g->seen));
    if (g->all == NULL || g->logits == NULL ||
        (g->seen == NULL && options->sampling.penalty > 0 && options->sampling.penalty != 1))
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %zu tokens", room);
    return DT_OK;
}

static void add_token(generator *g, int32_t token)
{
    g->all[g->count++] = token;
    if (g->seen != NULL)
        g->seen[token] = true;
}

/* The prompt as tokens, with room behind it for what is added. */
static dt_status start_text(generator *g, const dt_generate_options *options, dt_error *err)
{
    int32_t *prompt = NULL;
    dt_status st = DT_OK;

    if (options->prompt[0] != '\0')
        DT_TRY(dt_tokenizer_encode(&prompt, &g->prompt_count, g->from.tokenizer, options->prompt,
                                   strlen(options->prompt), err));
    if (g->prompt_count == 0)
        DT_TRY(dt_loaded_first_tokens(&prompt, &g->prompt_count, &g->from, err));
    DT_TRY(make_room(g, options, err));
    for (int64_t i = 0; i < g->prompt_count; i++)
        add_token(g, prompt[i]);
out:
    free(prompt);
    return st;
}

/* What follows the newest tokens, as many as the context holds. While all of them fit, the model
 * sees only what is new; then each pass is over the whole window, which has moved: the place of
 * every token in it is another one. */
static dt_status next_logits(generator *g, dt_error *err)
{
    int64_t context = g->text.context, first, length;
    bool fits = g->count <= context;
    dt_batch batch = {0};
    dt_tensor *tokens = &batch.inputs[0];
    dt_status st = DT_OK;

    first = fits ? dt_model_extended(g->from.model) : g->count - context;
    length = g->count - first;
    *tokens = dt_tensor_2d(g->from.tokens_in.data, DT_I32, 1, length);
    DT_TRY(g->from.device.copy_in(&g->from.device, tokens->data, g->all + first,
                                  (size_t)length * sizeof(*g->all), err));
    if (fits)
        DT_TRY(dt_model_extend(g->from.model, tokens, g->logits, err));
    else
        DT_TRY(dt_model_logits(g->from.model, &batch, 1, g->logits, err));
out:
    return st;
}

/* The text from *given on, as far as it is known not to become another. */
static dt_status give(const dt_generate_options *options, const dt_strbuf *text, size_t *given,
                      size_t until, dt_error *err)
{
    size_t from = *given;

    if (options->emit == NULL || until <= from)
        return DT_OK;
    *given = until;
    return options->emit(options->context, text->data + from, until - from, err);
}

static dt_status add_text(dt_strbuf *out, size_t given, dt_generated *result, generator *g,
                          const dt_generate_options *options, dt_error *err)
{
    int32_t end = options->past_end ? -1 : dt_tokenizer_end_of_text(g->from.tokenizer);
    size_t until;
    dt_status st = DT_OK;

    for (; result->tokens < options->tokens && result->end == DT_GENERATE_TOKENS;
         result->tokens++) {
        int32_t token;

        DT_TRY(next_logits(g, err));
        token = dt_sample_token(g->logits, dt_tokenizer_vocab(g->from.tokenizer),
                                &options->sampling, g->seen, (uint32_t)result->tokens);
        if (end >= 0 && token == end) {
            result->end = DT_GENERATE_END_OF_TEXT;
            continue;
        }
        dt_tokenizer_decode(out, g->from.tokenizer, token);
        add_token(g, token);
        if (dt_stops_find(&until, out, given, &options->stops))
            result->end = DT_GENERATE_STOP;
        DT_TRY(give(options, out, &given, until, err));
    }
    DT_TRY(give(options, out, &given, out->length, err)); /* what was held back */
out:
    return st;
}

const char *dt_generate_end_name(dt_generate_end end)
{
    static const char *const names[] = {[DT_GENERATE_TOKENS] = "tokens",
                                        [DT_GENERATE_END_OF_TEXT] = "end_of_text",
                                        [DT_GENERATE_STOP] = "stop"};

    return names[end];
}

dt_status dt_generate(dt_strbuf *out, dt_generated *result, const dt_generate_options *options,
                      dt_error *err)
{
    size_t start = out->length;
    generator g = {0};
    dt_status st = DT_OK;

    *result = (dt_generated){0};
    DT_TRY(dt_loaded_open(&g.from, options->checkpoint, err));
    DT_TRY(dt_loaded_open_model(&g.from, options->device, options->threads, options->precision, 1,
                                err));
    DT_TRY(dt_model_text_of(&g.text, g.from.model, err));
    DT_TRY(start_text(&g, options, err));
    result->step = dt_checkpoint_get_info(g.from.checkpoint)->step;
    if (g.from.ids && options->prompt[0] != '\0')
        dt_strbuf_add_char(out, ' '); /* the next number, not the next digit */
    DT_TRY(add_text(out, start, result, &g, options, err));
out:
    free(g.all);
    free(g.seen);
    free(g.logits);
    dt_loaded_close(&g.from);
    return st;
}
