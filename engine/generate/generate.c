#include "engine/generate/generate.h"

#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "engine/config.h"
#include "engine/data/data.h"
#include "recipes/fields.h"

#include "base/banned.h"

typedef struct generator {
    dt_checkpoint *checkpoint;
    dt_arena arena; /* the recipe's strings */
    dt_recipe recipe;
    dt_tokenizer *tokenizer;
    bool ids; /* numbers instead of text */
    dt_device device;
    dt_model *model;
    dt_model_text text;
    dt_device_arena memory;
    dt_tensor tokens_in; /* (1, context) */
    int32_t *all;        /* prompt and what was added, host */
    int64_t count, prompt_count;
    bool *seen;    /* (V): tokens of the text; NULL where nobody asks */
    float *logits; /* (V) */
} generator;

static dt_status open_checkpoint(generator *g, const char *path, dt_error *err)
{
    const dt_checkpoint_info *info;
    const char *kind;
    dt_status st = DT_OK;

    DT_TRY(dt_checkpoint_open(&g->checkpoint, path, err));
    info = dt_checkpoint_get_info(g->checkpoint);
    DT_TRY(dt_recipe_from_json(&g->recipe, info->recipe, &g->arena, err));
    DT_TRY(dt_json_get_string(&kind, info->tokenizer, "kind", path, err));
    g->ids = strcmp(kind, "ids") == 0;
    DT_TRY(dt_tokenizer_from_json(&g->tokenizer, info->tokenizer, err));
    DT_TRY(dt_tokenizer_load(g->tokenizer, path, err));
out:
    return st;
}

/* Every parameter goes into its unit's flat buffer. */
static dt_status load_weights(generator *g, dt_error *err)
{
    dt_model *model = g->model;
    float *host = NULL;
    int64_t largest = 0;
    dt_status st = DT_OK;

    for (int i = 0; i < model->param_count; i++)
        if (model->params[i].elems > largest)
            largest = model->params[i].elems;
    host = malloc((size_t)largest * sizeof(float));
    if (host == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a parameter of %lld elements",
                 (long long)largest);
    for (int i = 0; i < model->param_count; i++) {
        const dt_param *param = &model->params[i];

        DT_TRY(dt_checkpoint_load_param(g->checkpoint, param, host, err));
        DT_TRY(g->device.copy_in(&g->device,
                                 (float *)g->model->weights[param->unit] + param->offset_elems,
                                 host, (size_t)param->elems * sizeof(float), err));
    }
out:
    free(host);
    return st;
}

static dt_status open_model(generator *g, const char *device, int64_t threads, dt_error *err)
{
    dt_model_config config;
    size_t bytes = 0;
    dt_status st = DT_OK;

    DT_TRY(dt_config_inference(&config, &g->recipe, dt_tokenizer_vocab(g->tokenizer), err));
    config.incremental = true;
    DT_TRY(dt_device_open(&g->device, device, (int)threads, false, err));
    DT_TRY(dt_model_open(&g->model, &config, &g->device, err));
    DT_TRY(dt_model_text_of(&g->text, g->model, err));

    for (int unit = 0; unit < g->model->unit_count; unit++)
        bytes += (size_t)g->model->units[unit].elems * sizeof(float) + 64;
    bytes += (size_t)g->text.context * sizeof(int32_t) + 64;
    DT_TRY(dt_device_arena_open(&g->memory, &g->device, bytes, err));
    for (int unit = 0; unit < g->model->unit_count; unit++)
        g->model->weights[unit] =
            dt_device_arena_take(&g->memory, (size_t)g->model->units[unit].elems * sizeof(float));
    g->tokens_in.data = dt_device_arena_take(&g->memory, (size_t)g->text.context * sizeof(int32_t));
    DT_TRY(load_weights(g, err));
out:
    return st;
}

/* What a text begins with that no prompt begins. */
static dt_status first_token(int32_t **prompt, generator *g, dt_error *err)
{
    int32_t end = dt_tokenizer_end_of_text(g->tokenizer);

    if (end < 0 &&
        dt_tokenizer_encode(prompt, &g->prompt_count, g->tokenizer, "\n", 1, NULL) == DT_OK &&
        g->prompt_count > 0)
        return DT_OK;
    free(*prompt);
    *prompt = calloc(1, sizeof(**prompt));
    if (*prompt == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a prompt");
    **prompt = end >= 0 ? end : 0;
    g->prompt_count = 1;
    return DT_OK;
}

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
        DT_TRY(dt_tokenizer_encode(&prompt, &g->prompt_count, g->tokenizer, options->prompt,
                                   strlen(options->prompt), err));
    if (g->prompt_count == 0)
        DT_TRY(first_token(&prompt, g, err));
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

    first = fits ? dt_model_extended(g->model) : g->count - context;
    length = g->count - first;
    *tokens = dt_tensor_2d(g->tokens_in.data, DT_I32, 1, length);
    DT_TRY(g->device.copy_in(&g->device, tokens->data, g->all + first,
                             (size_t)length * sizeof(*g->all), err));
    if (fits)
        DT_TRY(dt_model_extend(g->model, tokens, g->logits, err));
    else
        DT_TRY(dt_model_logits(g->model, &batch, 1, g->logits, err));
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
    int32_t end = options->past_end ? -1 : dt_tokenizer_end_of_text(g->tokenizer);
    size_t until;
    dt_status st = DT_OK;

    for (; result->tokens < options->tokens && result->end == DT_GENERATE_TOKENS;
         result->tokens++) {
        int32_t token;

        DT_TRY(next_logits(g, err));
        token = dt_sample_token(g->logits, dt_tokenizer_vocab(g->tokenizer), &options->sampling,
                                g->seen, (uint32_t)result->tokens);
        if (end >= 0 && token == end) {
            result->end = DT_GENERATE_END_OF_TEXT;
            continue;
        }
        dt_tokenizer_decode(out, g->tokenizer, token);
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
    dt_arena_init(&g.arena, 0);
    DT_TRY(open_checkpoint(&g, options->checkpoint, err));
    DT_TRY(open_model(&g, options->device, options->threads, err));
    DT_TRY(start_text(&g, options, err));
    result->step = dt_checkpoint_get_info(g.checkpoint)->step;
    if (g.ids && options->prompt[0] != '\0')
        dt_strbuf_add_char(out, ' '); /* the next number, not the next digit */
    DT_TRY(add_text(out, start, result, &g, options, err));
out:
    free(g.all);
    free(g.seen);
    free(g.logits);
    dt_device_arena_close(&g.memory);
    dt_model_close(g.model);
    dt_device_close(&g.device);
    dt_tokenizer_free(g.tokenizer);
    dt_checkpoint_close(g.checkpoint);
    dt_arena_release(&g.arena);
    return st;
}
