#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/generate/text.h"
#include "engine/search/beam.h"

typedef struct text_search {
    dt_text *text;
    dt_loaded *from;
    int64_t beams;
} text_search;

/* Copy each hypothesis's parent to it, through the second half of the sequences. */
static dt_status take_parents(text_search *s, const int32_t *parents, int64_t versions,
                              dt_error *err)
{
    dt_model *model = s->from->model;
    bool same = true;
    dt_status st = DT_OK;

    for (int64_t k = 0; k < versions; k++)
        same = same && parents[k] == k;
    for (int64_t k = 0; k < versions && !same; k++)
        DT_TRY(dt_model_replace(model, s->beams + k, parents[k], err));
    for (int64_t k = 0; k < versions && !same; k++)
        DT_TRY(dt_model_replace(model, k, s->beams + k, err));
out:
    return st;
}

/* Implements dt_beam_next; the first call reads the prompt. */
static dt_status next(void *self, const int32_t *newest, const int32_t *parents, int64_t versions,
                      float *logits, dt_error *err)
{
    text_search *s = self;
    dt_tensor tokens = dt_tensor_2d(s->from->tokens_in.data, DT_I32, versions, 1);
    dt_status st = DT_OK;

    if (parents == NULL)
        return dt_text_logits(logits, s->text, s->from, 0, err);
    DT_TRY(take_parents(s, parents, versions, err));
    DT_TRY(s->from->device.copy_in(&s->from->device, tokens.data, newest,
                                   (size_t)versions * sizeof *newest, err));
    DT_TRY(dt_model_extend_each(s->from->model, &tokens, logits, err));
out:
    return st;
}

dt_status dt_text_search(dt_text *t, dt_loaded *from, dt_error *err)
{
    const dt_text_rules *rules = t->rules;
    int64_t context = from->model->config.decoder.context;
    dt_beam_options options = {.beams = rules->beams,
                               .vocab = from->model->config.decoder.vocab,
                               .ids = dt_tokenizer_vocab(t->from->tokenizer),
                               .most = rules->tokens,
                               .length_penalty = rules->length_penalty,
                               .end = -1,
                               .ends = from->ends.items,
                               .ends_count = rules->past_end ? 0 : (int64_t)from->ends.count,
                               .pad = -1,
                               .texts = true};
    text_search search = {t, from, rules->beams};
    dt_beam_result found = {0};
    dt_status st = DT_OK;

    if (t->count + rules->tokens > context)
        DT_THROW(err, DT_ERR_USAGE,
                 "a prompt of %lld tokens and %lld more exceed the model's context of %lld, the "
                 "limit of a beam search (lower --tokens)",
                 (long long)t->count, (long long)rules->tokens, (long long)context);
    DT_TRY(dt_model_replace(from->model, 0, DT_SEQUENCE_EMPTY, err));
    DT_TRY(dt_beam_search(&found, &options, next, &search, err));
    if (!isfinite(found.score))
        DT_TRY(dt_loaded_diverged(err));
    for (int64_t i = 0; i < found.count; i++) {
        dt_tokenizer_decode(&t->text, t->from->tokenizer, found.tokens[i]);
        t->tokens[t->count++] = found.tokens[i];
    }
    t->end = found.count < rules->tokens ? DT_TEXT_END_OF_TEXT : DT_TEXT_TOKENS;
    t->added = found.count + (t->end == DT_TEXT_END_OF_TEXT);
    t->score = found.score;
    t->whole = t->text.length;
    t->done = true;
out:
    free(found.tokens);
    return st;
}
