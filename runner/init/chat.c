/* chat: writes the recipe that tunes weights on conversations. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "engine/data/files.h"
#include "recipes/foreign/huggingface.h"
#include "recipes/read/reader.h"
#include "runner/corpus/chats.h"
#include "runner/init/init.h"
#include "runner/launch/nodes.h"
#include "runner/term/term.h"

enum {
    TOKENS_LEAST = 128,
    TOKENS_MOST = 4096,
    EPOCHS = 3,
    GPU_TOKENS = 8192, /* of a micro-step */
    CPU_TOKENS = 2048
};
#define READ_MOST \
    ((int64_t)8 << 20) /* bytes of text from which the longest conversation is found */
#define CONFIG_MOST ((size_t)1 << 24)

typedef struct chat_draft {
    const dt_init_wish *wish;
    dt_arena *arena;
    bool gpus;
    int64_t longest, seen, bytes; /* tokens of the longest conversation, of so many */
    bool whole;                   /* all were read */
    int64_t context;              /* of the weights; 0: not known */
    int64_t tokens, sequences;
    dt_preflight flight;
    dt_run_estimate estimate;
} chat_draft;

/* --- the data */

static dt_status add_length(void *context, const dt_chats_line *line, bool *stop, dt_error *err)
{
    chat_draft *d = context;
    int64_t count = (int64_t)line->row->count;

    (void)err;
    d->longest = count > d->longest ? count : d->longest;
    d->seen++;
    d->bytes += (int64_t)line->row->length;
    *stop = d->bytes > READ_MOST;
    d->whole = !*stop;
    return DT_OK;
}

/* Measures the conversations with the template of the weights. */
static dt_status measure(chat_draft *d, dt_error *err)
{
    dt_recipe recipe;
    dt_tokenizer *tokenizer = NULL;
    dt_chat *chat = NULL;
    dt_data_files files;
    dt_status st = DT_OK;

    dt_recipe_init(&recipe);
    recipe.data.tokenizer = d->wish->tokenizer != NULL ? d->wish->tokenizer : d->wish->weights;
    recipe.data.format = DT_DATA_CHAT;
    d->whole = true;
    DT_TRY(dt_tokenizer_read(&tokenizer, &recipe, err));
    DT_TRY(dt_chats_template(&chat, &recipe, tokenizer, d->arena, err));
    DT_TRY(dt_chats_files(&files, &d->wish->look->train, "DATA", d->arena, err));
    DT_TRY(dt_chats_each(&files, chat, false, add_length, d, err));
out:
    dt_chat_free(chat);
    dt_tokenizer_free(tokenizer);
    return st;
}

static dt_status read_context(chat_draft *d, dt_error *err)
{
    static const char *const keys[] = {"max_position_embeddings", "n_positions"};
    const char *path = dt_arena_printf(d->arena, "%s/" DT_HUGGINGFACE_CONFIG, d->wish->weights);
    json_t *config = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_json_read_foreign(&config, path, CONFIG_MOST, err));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && d->context == 0; i++)
        d->context = json_integer_value(json_object_get(config, keys[i]));
out:
    json_decref(config);
    return st;
}

/* --- the recipe */

static void chat_add_recipe(dt_strbuf *out, const chat_draft *d)
{
    const dt_look *look = d->wish->look;

    dt_strbuf_add_str(out, "model:\n  from: ");
    dt_init_add_quoted(out, d->wish->weights);
    dt_strbuf_add_str(out, "\ndata:\n  format: chat\n");
    dt_init_add_train(out, d->wish);
    if (look->validation.count > 0)
        dt_init_add_files(out, "validation", &look->validation);
    else
        dt_strbuf_add_str(out, "  split: 0.1            # the last tenth is for validation\n");
    if (d->wish->tokenizer != NULL) {
        dt_strbuf_add_str(out, "  tokenizer: ");
        dt_init_add_quoted(out, d->wish->tokenizer);
        dt_strbuf_add_char(out, '\n');
    }
    dt_strbuf_add_str(out, "  pack: true            # several conversations share a sequence\n");
    if (!d->whole || d->longest > d->tokens)
        dt_strbuf_add_str(out, "  too_long: cut         # or drop, or refuse\n");
    dt_strbuf_add_fmt(out,
                      "batch:\n  sequences: %lld\n"
                      "  tokens: %lld            # of a sequence: the longest conversation%s\n",
                      (long long)d->sequences, (long long)d->tokens,
                      d->longest > d->tokens ? " that is not cut" : "");
    dt_strbuf_add_fmt(
        out,
        "# lora: 16              # an adapter instead of all weights, with an lr of 2e-4\n"
        "optimizer: {lr: 2e-5, weight_decay: 0}\nclip: 1\n"
        "schedule: {epochs: %d, warmup_steps: 10}\n"
        "evaluate: {every_epoch: 1}\n",
        EPOCHS);
    dt_init_add_place(out, d->wish, d->gpus);
}

static void chat_add_head(dt_strbuf *out, const chat_draft *d)
{
    char parameters[DT_FORMAT_SIZE], bytes[DT_FORMAT_SIZE];

    dt_init_add_schema(out);
    dt_init_add_comment(out, "data", dt_preflight_chats_text(&d->flight, d->arena));
    dt_init_add_comment(out, "model",
                        dt_arena_printf(d->arena, "%s parameters of '%s', %s of memory a rank",
                                        dt_format_count(parameters, sizeof(parameters),
                                                        (double)d->flight.memory.parameter_count),
                                        d->wish->weights,
                                        dt_format_bytes(bytes, sizeof(bytes),
                                                        (double)d->flight.memory.total_bytes)));
    dt_init_add_comment(out, "time",
                        dt_arena_printf(d->arena, "%s (%s)",
                                        dt_run_estimate_time_text(&d->estimate, d->arena),
                                        d->estimate.basis));
    dt_init_add_comment(out, "next",
                        "look at what is trained with 'dtrun data show', check with 'dtrun "
                        "validate', test with 'dtrun smoke', run with 'dtrun launch'");
    dt_strbuf_add_str(out, "recipe: 1\n\n");
}

/* Reads the draft as validate does. */
static dt_status check(chat_draft *d, dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    chat_add_recipe(&text, d);
    st = dt_init_look_at(&d->flight, &d->estimate, d->wish, dt_arena_strdup(d->arena, text.data),
                         d->arena, err);
    dt_strbuf_release(&text);
    return st;
}

static bool fits(chat_draft *d)
{
    dt_error tight = DT_ERROR_INIT;

    if (d->estimate.gpu != NULL)
        return dt_run_estimate_check_gpu(&d->flight, d->estimate.gpu, &tight) == DT_OK;
    return dt_preflight_fits_here(&d->flight, &d->flight.recipe, &tight);
}

/* The power of two that holds the longest conversation, within the model's context. */
static void choose_tokens(chat_draft *d)
{
    d->tokens = TOKENS_LEAST;
    while (d->tokens < TOKENS_MOST && d->tokens < d->longest)
        d->tokens *= 2;
    if (d->context > 0 && d->tokens > d->context)
        d->tokens = d->context;
    d->sequences = (d->gpus ? GPU_TOKENS : CPU_TOKENS) / d->tokens;
    if (d->sequences < 1)
        d->sequences = 1;
}

dt_status dt_init_chat_recipe(dt_strbuf *out, const dt_init_wish *wish, dt_arena *arena,
                              dt_error *err)
{
    chat_draft d = {.wish = wish, .arena = arena};
    dt_status st = DT_OK;

    d.gpus = wish->gpus_as != NULL || (wish->nodes == NULL && dt_placement_gpus_here() > 0);
    DT_TRY(measure(&d, err));
    DT_TRY(read_context(&d, err));
    choose_tokens(&d);
    DT_TRY(check(&d, err));
    while (!fits(&d) && d.sequences > 1) {
        d.sequences /= 2;
        DT_TRY(check(&d, err));
    }
    chat_add_head(out, &d);
    chat_add_recipe(out, &d);
out:
    return st;
}
