/* samples: generates the texts of the recipe's 'evaluate.samples' during training. */
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "engine/channel/events.h"
#include "engine/generate/text.h"
#include "engine/progress.h"
#include "engine/train/train_int.h"

#define TOGETHER 16 /* tokens of a rank between two exchanges with the other ranks */

/* A prompt, and its text once it is generated. */
typedef struct sample {
    const char *prompt;
    const dt_plan_prompt *ids; /* NULL: the text of the prompt is encoded here */
    json_t *done; /* {"prompt", "text", "tokens", "ended"}; NULL: not yet, or another rank has it */
} sample;

struct dt_train_samples {
    dt_loaded from; /* borrows tokenizer and model from the session; owns `ends` */
    dt_text_rules rules;
    sample *items;
    int64_t count;
    dt_device_arena memory; /* of from.tokens_in */
    float *logits;
    /* of an evaluation */
    int64_t at;   /* the sample that this rank generates */
    dt_text text; /* its text, while begun */
    bool begun;
};

/* --- opening */

static dt_text_rules rules_of(const dt_recipe *recipe)
{
    return (dt_text_rules){.tokens = recipe->evaluate.samples_tokens,
                           .sampling = {.temperature = recipe->evaluate.samples_temperature,
                                        .top_k = recipe->evaluate.samples_top_k,
                                        .top_p = recipe->evaluate.samples_top_p,
                                        .seed = (uint64_t)recipe->evaluate.samples_seed}};
}

/* Opens the text of a prompt, which checks the prompt too. */
static dt_status open_text(dt_text *out, const dt_train_samples *s, int64_t i, dt_error *err)
{
    uint64_t seed = s->rules.sampling.seed + (uint64_t)i;
    const char *prompt = s->items[i].prompt;
    const dt_plan_prompt *ids = s->items[i].ids;
    dt_status st = ids != NULL
                       ? dt_text_open_ids(out, &s->from, &s->rules, ids->ids, ids->count, seed, err)
                       : dt_text_open(out, &s->from, &s->rules, prompt, strlen(prompt), seed, err);

    if (st != DT_OK)
        dt_error_prefix(err, "prompt %lld", (long long)i + 1);
    return st;
}

/* Checks the prompts. *longest: tokens of the longest text. */
static dt_status measure(int64_t *longest, const dt_train_samples *s, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < s->count && st == DT_OK; i++) {
        dt_text text;

        st = open_text(&text, s, i, err);
        if (st == DT_OK && text.count + s->rules.tokens > *longest)
            *longest = text.count + s->rules.tokens;
        dt_text_close(&text);
    }
    return st;
}

static dt_status read_prompts(dt_train_samples *s, dt_train_session *session, dt_error *err)
{
    const dt_string_list *prompts = &session->recipe->evaluate.samples;
    const dt_plan *plan = session->plan;
    bool chats = session->recipe->data.format == DT_DATA_CHAT;
    dt_status st = DT_OK;

    if (chats && plan->prompt_count != prompts->count)
        DT_THROW(err, DT_ERR_CORRUPT, "the plan lacks the ids of %lld prompts",
                 (long long)(prompts->count - plan->prompt_count));

    s->count = prompts->count;
    s->items = calloc((size_t)s->count, sizeof(*s->items));
    if (s->items == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for %lld samples", (long long)s->count);
    for (int64_t i = 0; i < s->count; i++)
        s->items[i] =
            (sample){.prompt = prompts->items[i], .ids = chats ? &plan->prompts[i] : NULL};
out:
    return st;
}

static dt_status open_loaded(dt_train_samples *s, dt_train_session *session, dt_error *err)
{
    const dt_tokenizer *tokenizer = dt_dataset_tokenizer(session->data.dataset);
    json_t *json = dt_tokenizer_to_json(tokenizer);
    const char *kind = json_string_value(json_object_get(json, "kind"));

    s->from.recipe = *session->recipe;
    s->from.tokenizer = (dt_tokenizer *)tokenizer; /* texts only read it */
    s->from.ids = kind != NULL && strcmp(kind, "ids") == 0;
    json_decref(json);
    return dt_tokenizer_ends(&s->from.ends, tokenizer, session->recipe, err);
}

static dt_status open_memory(dt_train_samples *s, dt_train_session *session, dt_error *err)
{
    size_t bytes = (size_t)session->recipe->batch.tokens * sizeof(int32_t);
    dt_model_text source;
    dt_status st = DT_OK;

    DT_TRY(dt_model_text_of(&source, session->model, err));
    s->logits = calloc((size_t)source.vocab, sizeof(*s->logits));
    if (s->logits == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the logits of %lld tokens",
                 (long long)source.vocab);
    DT_TRY(dt_device_arena_open(&s->memory, &session->device, bytes + 64, err));
    s->from.tokens_in.data = dt_device_arena_take(&s->memory, bytes);
out:
    return st;
}

dt_status dt_train_samples_open(dt_train_session *session, dt_error *err)
{
    dt_train_samples *s;
    int64_t longest = 0;
    dt_status st = DT_OK;

    if (session->recipe->evaluate.samples.count == 0)
        return DT_OK;
    session->evaluation.samples = s = calloc(1, sizeof(*s));
    if (s == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for samples");
    s->rules = rules_of(session->recipe);
    DT_TRY(read_prompts(s, session, err));
    DT_TRY(open_memory(s, session, err));
    DT_TRY(open_loaded(s, session, err));
    DT_TRY(measure(&longest, s, err));
    dt_side_model_need(&session->evaluation.side, longest);
out:
    if (st == DT_ERR_USAGE || st == DT_ERR_UNSUPPORTED) /* a restart would not help */
        err->code = st = DT_ERR_RECIPE;
    if (st != DT_OK)
        dt_error_prefix(err, "'evaluate.samples'");
    return st;
}

static void forget_texts(dt_train_samples *s)
{
    if (s->begun)
        dt_text_close(&s->text);
    s->begun = false;
    for (int64_t i = 0; s->items != NULL && i < s->count; i++) {
        json_decref(s->items[i].done);
        s->items[i].done = NULL;
    }
}

void dt_train_samples_close(dt_train_samples *s)
{
    if (s == NULL)
        return;
    forget_texts(s);
    dt_device_arena_close(&s->memory);
    dt_ids_release(&s->from.ends);
    free(s->items);
    free(s->logits);
    free(s);
}

/* --- a text */

/* Returns the text as valid UTF-8 without NUL, of at most DT_SAMPLE_BYTES. */
static json_t *as_json(const char *text, size_t length)
{
    json_t *out;
    dt_strbuf valid;

    dt_strbuf_init(&valid);
    for (size_t from = 0, end; from < length; from = end + 1) {
        end = from + strnlen(text + from, length - from);
        dt_utf8_add_valid(&valid, text + from, end - from);
        if (end < length) /* a NUL, which stored texts cannot have */
            dt_strbuf_add_str(&valid, DT_UTF8_REPLACEMENT);
    }
    if (valid.length > DT_SAMPLE_BYTES)
        valid.length = dt_utf8_valid_length(valid.data, DT_SAMPLE_BYTES);
    out = json_stringn(valid.data, valid.length);
    dt_strbuf_release(&valid);
    return out;
}

static void finish(dt_train_samples *s, const char *ended)
{
    const char *prompt = s->items[s->at].prompt;

    s->items[s->at].done = json_pack("{s:I, s:o, s:o, s:I, s:s}", "index", (json_int_t)s->at,
                                     "prompt", as_json(prompt, strlen(prompt)), "text",
                                     as_json(s->text.text.data, s->text.text.length), "tokens",
                                     (json_int_t)s->text.added, "ended", ended);
    dt_text_close(&s->text);
    s->begun = false;
}

static dt_status begin(dt_train_samples *s, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(open_text(&s->text, s, s->at, err));
    s->begun = true;
    DT_TRY(dt_model_replace(s->from.model, 0, DT_SEQUENCE_EMPTY, err));
out:
    return st;
}

/* Adds a token. Logits that are not finite end the text. */
static dt_status grow(dt_train_samples *s, dt_error *err)
{
    dt_error diverged = DT_ERROR_INIT;
    dt_status st = DT_OK;

    DT_TRY(dt_text_logits(s->logits, &s->text, &s->from, 0, err));
    if (dt_text_take(&s->text, s->logits, &diverged) != DT_OK)
        finish(s, DT_SAMPLE_DIVERGED);
    else if (s->text.done)
        finish(s, dt_text_end_name(s->text.end));
out:
    return st;
}

/* Adds TOGETHER tokens to this data rank's samples. *left: some are not done. */
static dt_status run_some(bool *left, dt_train_session *session, dt_error *err)
{
    dt_train_samples *s = session->evaluation.samples;
    dt_status st = DT_OK;

    for (int64_t k = 0; k < TOGETHER && s->at < s->count; k++) {
        /* ranks that divide layers generate the same samples, and must stop together */
        if (session->model->peers == NULL && dt_stop_asked())
            break;
        if (!s->begun)
            DT_TRY(begin(s, err));
        DT_TRY(grow(s, err));
        dt_progress_made();
        if (!s->begun)
            s->at += session->mesh.data.size;
    }
    *left = s->at < s->count;
out:
    return st;
}

/* --- all texts */

/* Appends the texts of this rank as a JSON array. */
static void write_own(dt_strbuf *out, const dt_train_samples *s)
{
    json_t *list = json_array();

    for (int64_t i = 0; i < s->count; i++)
        if (s->items[i].done != NULL)
            json_array_append(list, s->items[i].done);
    dt_json_write(out, list);
    json_decref(list);
}

/* Takes the texts of a rank. Ranks that divide layers have the same ones. */
static dt_status take_others(dt_train_samples *s, const char *text, size_t length, dt_error *err)
{
    json_t *list = NULL, *item;
    dt_status st = DT_OK;
    size_t i;

    DT_TRY(dt_json_parse(&list, text, length, "samples", err));
    json_array_foreach(list, i, item) {
        json_int_t at = json_integer_value(json_object_get(item, "index"));

        DT_ASSERT(at >= 0 && at < s->count);
        json_decref(s->items[at].done);
        s->items[at].done = json_incref(item);
    }
out:
    json_decref(list);
    return st;
}

/* Collective: brings the texts of all ranks to rank 0. */
static dt_status gather(dt_train_session *session, dt_error *err)
{
    dt_train_samples *s = session->evaluation.samples;
    size_t ranks = (size_t)session->comm.world_size, most = 0;
    uint64_t *lengths = calloc(ranks, sizeof(*lengths)), own_length;
    char *all = NULL, *padded = NULL;
    dt_status st = DT_OK;
    dt_strbuf own;

    dt_strbuf_init(&own);
    write_own(&own, s);
    own_length = own.length;
    if (lengths == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the lengths of samples");
    DT_TRY(session->comm.all_gather(&session->comm, lengths, &own_length, sizeof(own_length), err));
    for (size_t r = 0; r < ranks; r++)
        most = lengths[r] > most ? lengths[r] : most;
    all = calloc(ranks, most);
    padded = calloc(1, most);
    if (all == NULL || padded == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the samples of all ranks");
    memcpy(padded, own.data, own.length);
    DT_TRY(session->comm.all_gather(&session->comm, all, padded, most, err));
    for (size_t r = 0; r < ranks && session->mesh.world.rank == 0; r++)
        DT_TRY(take_others(s, all + r * most, lengths[r], err));
out:
    free(lengths);
    free(all);
    free(padded);
    dt_strbuf_release(&own);
    return st;
}

dt_status dt_train_samples_run(json_t **texts, dt_train_session *session, bool *stopped,
                               dt_error *err)
{
    dt_train_samples *s = session->evaluation.samples;
    double sums[2] = {1, 0}; /* ranks with samples left, ranks that were asked to stop */
    dt_status st = DT_OK;
    bool left;

    *texts = NULL;
    *stopped = false;
    s->from.model = session->evaluation.side.model;
    s->at = session->mesh.data.rank;
    DT_TRY(dt_side_model_take(&session->evaluation.side, session, err));
    while (sums[0] > 0) {
        DT_TRY(run_some(&left, session, err));
        sums[0] = left ? 1 : 0;
        sums[1] = dt_stop_asked() ? 1 : 0;
        DT_TRY(session->comm.all_reduce_f64(&session->comm, sums, 2, err));
        *stopped = sums[1] > 0;
        if (*stopped)
            goto out;
    }
    DT_TRY(gather(session, err));
    if (session->mesh.world.rank == 0) {
        *texts = json_array();
        for (int64_t i = 0; i < s->count; i++)
            json_array_append(*texts, s->items[i].done);
    }
    session->evaluation.samples_step = session->step;
out:
    forget_texts(s);
    return st;
}
