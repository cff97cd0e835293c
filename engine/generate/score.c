#include "engine/generate/generate.h"

#include <math.h>
#include <stdlib.h>

#include "engine/data/sides.h"
#include "engine/generate/text.h"
#include "engine/tokens/text_lines.h"

typedef struct scorer {
    dt_loaded from;
    const dt_sides *sides; /* tokenizers of sentence pairs; NULL for texts */
    dt_side_encoder encoders[DT_LANGUAGES];
    /* scores of a line; for texts: [0] first tokens and line, [1] targets of a window */
    dt_ids ids[DT_LANGUAGES];
    dt_device_arena memory;
    void *inputs[DT_INPUTS_MAX]; /* memory for the ids of a context */
    int64_t context;
    int32_t *first; /* tokens that start every text */
    int64_t first_count;
    double log_likelihood; /* log-likelihood of the current line, so far */
    int64_t counted;
} scorer;

/* --- opening */

static dt_status open_text(scorer *s, dt_error *err)
{
    dt_model_text text;
    dt_status st = DT_OK;

    DT_TRY(dt_model_text_of(&text, s->from.model, err));
    DT_TRY(dt_loaded_first_tokens(&s->first, &s->first_count, &s->from, err));
    s->context = text.context;
out:
    return st;
}

static dt_status open_pairs(scorer *s, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_side_encoder_open(&s->encoders[DT_SOURCE], s->sides->source, err));
    DT_TRY(dt_side_encoder_open(&s->encoders[DT_TARGET], s->sides->target, err));
    s->context = s->from.model->config.tokens;
out:
    return st;
}

static dt_status check_pairs(const scorer *s, const dt_score_options *options, dt_error *err)
{
    if (s->sides != NULL && options->target.text == NULL)
        return DT_FAIL(
            err, DT_ERR_USAGE,
            "the run was trained on sentence pairs: also give the translations (--target)");
    if (s->sides == NULL && options->target.text != NULL)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "the run was not trained on sentence pairs: leave out --target");
    return DT_OK;
}

static dt_status open_scorer(scorer *s, const dt_score_options *options, dt_error *err)
{
    enum { INPUTS = 3 };
    size_t bytes;
    dt_status st = DT_OK;

    DT_TRY(dt_loaded_open(&s->from, options->checkpoint, options->base, err));
    s->sides = dt_tokenizer_sides(s->from.tokenizer);
    DT_TRY(check_pairs(s, options, err));
    DT_TRY(dt_loaded_open_model(&s->from, options->device, options->threads, DT_F32,
                                &(dt_loaded_room){.batch = 1}, err));
    DT_TRY(s->sides != NULL ? open_pairs(s, err) : open_text(s, err));
    bytes = (size_t)(s->context + 1) * sizeof(int32_t) + 64;
    DT_TRY(dt_device_arena_open(&s->memory, &s->from.device, INPUTS * bytes, err));
    for (int i = 0; i < INPUTS; i++)
        s->inputs[i] = dt_device_arena_take(&s->memory, bytes - 64);
out:
    return st;
}

static void close_scorer(scorer *s)
{
    for (int i = 0; i < DT_LANGUAGES; i++) {
        dt_side_encoder_close(&s->encoders[i]);
        dt_ids_release(&s->ids[i]);
    }
    free(s->first);
    dt_device_arena_close(&s->memory);
    dt_loaded_close(&s->from);
}

/* --- a line */

static dt_status add_ids(dt_ids *out, const int32_t *ids, int64_t count, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < count; i++)
        DT_TRY(dt_ids_add(out, ids[i], err));
out:
    return st;
}

static dt_status put(scorer *s, dt_tensor *out, int place, const int32_t *ids, int64_t count,
                     dt_error *err)
{
    dt_device *device = &s->from.device;

    *out = dt_tensor_2d(s->inputs[place], DT_I32, 1, count);
    return device->copy_in(device, out->data, ids, (size_t)count * sizeof(*ids), err);
}

/* Evaluate a batch and add it to the current line's totals. */
static dt_status evaluate(scorer *s, const dt_batch *batch, dt_error *err)
{
    double loss = 0, counted = 0;
    dt_status st = DT_OK;

    DT_TRY(dt_model_evaluate(s->from.model, batch, &loss, &counted, err));
    if (!isfinite(loss))
        DT_TRY(dt_loaded_diverged(err));
    s->log_likelihood -= counted > 0 ? loss : 0;
    s->counted += (int64_t)counted;
out:
    return st;
}

/* A sentence pair cannot be split into windows: attention needs the whole source. */
static dt_status refuse_long(int64_t tokens, int64_t most, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_USAGE, "it has %lld tokens; the model reads at most %lld",
                   (long long)tokens, (long long)most);
}

/* Evaluate tokens begin .. end as a window; its first `given` targets do not count. */
static dt_status evaluate_window(scorer *s, int64_t begin, int64_t end, int64_t given,
                                 dt_error *err)
{
    const int32_t *ids = s->ids[0].items;
    dt_ids *targets = &s->ids[1];
    dt_batch batch = {.seed = 0};
    dt_status st = DT_OK;

    targets->count = 0;
    for (int64_t i = begin; i < end; i++)
        DT_TRY(dt_ids_add(targets, i - begin < given ? -1 : ids[i + 1], err));
    DT_TRY(put(s, &batch.inputs[DT_DECODER_TOKENS], 0, ids + begin, end - begin, err));
    DT_TRY(put(s, &batch.inputs[DT_DECODER_TARGETS], 1, targets->items, end - begin, err));
    DT_TRY(evaluate(s, &batch, err));
out:
    return st;
}

/* Evaluate in windows of the context. In each but the first, half of the targets were predicted
 * before and half are new. */
static dt_status evaluate_text(scorer *s, dt_error *err)
{
    int64_t count = (int64_t)s->ids[0].count - 1, end;
    int64_t given = s->first_count > 0 ? s->first_count - 1 : 0;
    dt_status st = DT_OK;

    for (int64_t done = 0; done < count; done = end) {
        int64_t room = done == 0 ? s->context : (s->context + 1) / 2, begin;

        end = count - done < room ? count : done + room;
        begin = end > s->context ? end - s->context : 0;
        DT_TRY(evaluate_window(s, begin, end, done > given ? done - begin : given - begin, err));
    }
out:
    return st;
}

static dt_status score_text(scorer *s, const char *line, size_t length, dt_error *err)
{
    int32_t end = dt_tokenizer_end_of_text(s->from.tokenizer), *encoded = NULL;
    dt_ids *ids = &s->ids[0];
    dt_status st = DT_OK;
    int64_t count = 0;

    ids->count = 0;
    if (length > 0)
        DT_TRY(dt_tokenizer_encode(&encoded, &count, s->from.tokenizer, line, length, err));
    DT_TRY(add_ids(ids, s->first, s->first_count, err));
    DT_TRY(add_ids(ids, encoded, count, err));
    if (end >= 0)
        DT_TRY(dt_ids_add(ids, end, err));
    if ((int64_t)ids->count > s->first_count)
        DT_TRY(evaluate_text(s, err));
out:
    free(encoded);
    return st;
}

static dt_status score_pair(scorer *s, const char *const lines[], const size_t lengths[],
                            dt_error *err)
{
    const dt_ids *source = &s->ids[DT_SOURCE], *target = &s->ids[DT_TARGET];
    dt_batch batch = {.seed = 0};
    dt_ids previous = {0};
    dt_status st = DT_OK;

    for (int i = 0; i < DT_LANGUAGES; i++) {
        s->ids[i].count = 0;
        DT_TRY(dt_side_encode(&s->ids[i], &s->encoders[i], lines[i], lengths[i], err));
        if ((int64_t)s->ids[i].count > s->context)
            DT_TRY(refuse_long((int64_t)s->ids[i].count, s->context, err));
    }
    DT_TRY(dt_ids_add(&previous, s->sides->target->end, err));
    DT_TRY(add_ids(&previous, target->items, (int64_t)target->count - 1, err));
    DT_TRY(put(s, &batch.inputs[DT_TRANSFORMER_SOURCE], 0, source->items, (int64_t)source->count,
               err));
    DT_TRY(put(s, &batch.inputs[DT_TRANSFORMER_PREVIOUS], 1, previous.items,
               (int64_t)previous.count, err));
    DT_TRY(put(s, &batch.inputs[DT_TRANSFORMER_TARGETS], 2, target->items, (int64_t)target->count,
               err));
    DT_TRY(evaluate(s, &batch, err));
out:
    dt_ids_release(&previous);
    return st;
}

dt_status dt_score(const dt_score_options *options, dt_error *err)
{
    dt_text_lines input = {options->input.text, options->input.text + options->input.length};
    dt_text_lines target = {options->target.text, options->target.text};
    const char *lines[DT_LANGUAGES] = {NULL};
    size_t lengths[DT_LANGUAGES] = {0};
    dt_status st = DT_OK;
    int64_t line = 1;
    scorer s = {.sides = NULL};

    if (target.at != NULL)
        target.end += options->target.length;
    DT_TRY(open_scorer(&s, options, err));
    for (; dt_text_lines_next(&lines[0], &lengths[0], &input); line++) {
        if (s.sides != NULL && !dt_text_lines_next(&lines[1], &lengths[1], &target))
            DT_THROW(err, DT_ERR_USAGE, "--target ends before line %lld of --input",
                     (long long)line);
        s.log_likelihood = 0;
        s.counted = 0;
        st = s.sides != NULL ? score_pair(&s, lines, lengths, err)
                             : score_text(&s, lines[0], lengths[0], err);
        if (st == DT_OK)
            st = options->emit(options->context, s.log_likelihood, s.counted, err);
        if (st != DT_OK)
            dt_error_prefix(
                err, "line %lld",
                (long long)(options->numbers != NULL ? options->numbers[line - 1] + 1 : line));
        DT_TRY(st);
    }
    if (s.sides != NULL && dt_text_lines_next(&lines[1], &lengths[1], &target))
        DT_THROW(err, DT_ERR_USAGE, "--input ends before line %lld of --target", (long long)line);
out:
    close_scorer(&s);
    return st;
}
