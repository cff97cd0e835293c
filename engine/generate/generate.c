/* generate: generates one text, and continues the lines of a file, several at once. */
#include "engine/generate/generate.h"

#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "engine/tokens/text_lines.h"

/* --- one text */

/* Pass on the new text that later tokens can no longer change. */
static dt_status give_text(const dt_generate_options *options, const dt_text *text, size_t *given,
                           dt_error *err)
{
    size_t from = *given;

    if (options->emit == NULL || text->whole <= from)
        return DT_OK;
    *given = text->whole;
    return options->emit(options->context, text->text.data + from, text->whole - from, err);
}

dt_status dt_generate(dt_strbuf *out, dt_generated *result, const dt_generate_options *options,
                      dt_error *err)
{
    const dt_loaded_room room = {.batch = 1, .sequences = dt_text_sequences(&options->rules)};
    dt_loaded from = {0};
    dt_text text = {0};
    float *logits = NULL;
    dt_model_text source;
    dt_status st = DT_OK;
    size_t given = 0;

    *result = (dt_generated){0};
    DT_TRY(dt_loaded_open(&from, options->checkpoint, NULL, err));
    DT_TRY(dt_loaded_open_model(&from, options->device, options->threads, options->precision, &room,
                                err));
    DT_TRY(dt_model_text_of(&source, from.model, err));
    DT_TRY(dt_text_open(&text, &from, &options->rules, options->prompt, strlen(options->prompt),
                        options->rules.sampling.seed, err));
    logits = calloc((size_t)source.vocab, sizeof *logits);
    if (logits == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the logits of %lld tokens",
                 (long long)source.vocab);
    if (options->rules.beams > 1) {
        DT_TRY(dt_text_search(&text, &from, err));
        DT_TRY(give_text(options, &text, &given, err));
    }
    while (!text.done) {
        DT_TRY(dt_text_logits(logits, &text, &from, 0, err));
        DT_TRY(dt_text_take(&text, logits, err));
        DT_TRY(give_text(options, &text, &given, err));
    }
    dt_strbuf_add(out, text.text.data, text.text.length);
    *result = (dt_generated){.step = dt_checkpoint_get_info(from.checkpoint)->step,
                             .tokens = text.added,
                             .end = text.end,
                             .score = text.score};
out:
    free(logits);
    dt_text_close(&text);
    dt_loaded_close(&from);
    return st;
}

/* --- lines of a file */

typedef struct line {
    const char *prompt;
    size_t length;
    dt_text text;
} line;

typedef struct lines {
    const dt_continue_options *options;
    dt_loaded from;
    line *items;
    int64_t count, begun, given; /* given: lines passed to the caller, in order */
    int64_t *active;             /* [batch]: index of the line that sequence k extends */
    int64_t active_count, batch;
    int64_t vocab;
    int32_t *newest; /* [batch]: last token of each sequence */
    float *logits;   /* (batch, V): logits of each sequence */
} lines;

/* --- before generating */

static int64_t count_lines(const dt_continue_options *options)
{
    dt_text_lines text_lines = {options->text, options->text + options->length};
    const char *prompt;
    int64_t count = 0;
    size_t length;

    while (dt_text_lines_next(&prompt, &length, &text_lines))
        count++;
    return count;
}

static int64_t number_of(const dt_continue_options *options, int64_t at)
{
    return options->numbers != NULL ? options->numbers[at] : at;
}

static dt_status open_line(lines *l, line *to, uint64_t seed, dt_error *err)
{
    const dt_continue_options *options = l->options;
    dt_ids ids = {0};
    dt_status st = DT_OK;

    if (options->encode == NULL)
        return dt_text_open(&to->text, &l->from, &options->rules, to->prompt, to->length, seed,
                            err);
    DT_TRY(options->encode(options->context, &ids, to->prompt, to->length, err));
    DT_TRY(dt_text_open_ids(&to->text, &l->from, &options->rules, ids.items, (int64_t)ids.count,
                            seed, err));
out:
    dt_ids_release(&ids);
    return st;
}

static dt_status read_lines(lines *l, dt_error *err)
{
    const dt_continue_options *options = l->options;
    dt_text_lines text_lines = {options->text, options->text + options->length};
    int64_t most = count_lines(options);
    dt_status st = DT_OK;
    const char *prompt;
    size_t length;

    l->items = calloc((size_t)most + 1, sizeof *l->items);
    if (l->items == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for %lld lines", (long long)most);
    while (dt_text_lines_next(&prompt, &length, &text_lines)) {
        int64_t number = number_of(options, l->count);
        line *to = &l->items[l->count];

        to->prompt = prompt;
        to->length = length;
        st = open_line(l, to, options->rules.sampling.seed + (uint64_t)number, err);
        l->count++; /* count before an error is handled, so that it gets closed */
        if (st != DT_OK)
            dt_error_prefix(err, "line %lld", (long long)number + 1);
        DT_TRY(st);
    }
out:
    return st;
}

static bool searches(const lines *l)
{
    return l->options->rules.beams > 1;
}

/* Model sizes for the longest line, at most the context. */
static dt_loaded_room room_of(const lines *l)
{
    int64_t context = l->from.recipe.batch.tokens, longest = 0;

    for (int64_t i = 0; i < l->count; i++)
        longest = l->items[i].text.count > longest ? l->items[i].text.count : longest;
    longest += l->options->rules.tokens;
    return (dt_loaded_room){.batch = 1,
                            .sequences =
                                searches(l) ? dt_text_sequences(&l->options->rules) : l->batch,
                            .kept = longest < context ? longest : 0};
}

static dt_status open_lines(lines *l, dt_error *err)
{
    const dt_continue_options *options = l->options;
    dt_model_text source;
    dt_loaded_room room;
    dt_status st = DT_OK;

    DT_TRY(dt_loaded_open(&l->from, options->checkpoint, options->base, err));
    if (options->open != NULL)
        DT_TRY(options->open(options->context, &l->from, err));
    DT_TRY(read_lines(l, err));
    if (l->count == 0)
        return DT_OK;
    l->batch = options->batch < l->count ? options->batch : l->count;
    room = room_of(l);
    DT_TRY(dt_loaded_open_model(&l->from, options->device, options->threads, options->precision,
                                &room, err));
    DT_TRY(dt_model_text_of(&source, l->from.model, err));
    l->vocab = source.vocab;
    l->active = calloc((size_t)l->batch, sizeof *l->active);
    l->newest = calloc((size_t)l->batch, sizeof *l->newest);
    l->logits = calloc((size_t)(l->batch * source.vocab), sizeof *l->logits);
    if (l->active == NULL || l->newest == NULL || l->logits == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to generate %lld lines at once",
                 (long long)l->batch);
out:
    return st;
}

static void close_lines(lines *l)
{
    for (int64_t i = 0; i < l->count; i++)
        dt_text_close(&l->items[i].text);
    free(l->items);
    free(l->active);
    free(l->newest);
    free(l->logits);
    dt_loaded_close(&l->from);
}

/* --- generating */

static dt_text *text_of(const lines *l, int64_t sequence)
{
    return &l->items[l->active[sequence]].text;
}

static dt_status take(lines *l, int64_t sequence, float *logits, dt_error *err)
{
    dt_status st = dt_text_take(text_of(l, sequence), logits, err);

    if (st != DT_OK)
        dt_error_prefix(err, "line %lld",
                        (long long)number_of(l->options, l->active[sequence]) + 1);
    return st;
}

/* Generate one token for a single sequence, by a full pass over its prompt or its last window. */
static dt_status grow_alone(lines *l, int64_t sequence, dt_error *err)
{
    dt_text *text = text_of(l, sequence);
    dt_status st = DT_OK;

    DT_TRY(dt_text_logits(l->logits, text, &l->from, sequence, err));
    DT_TRY(take(l, sequence, l->logits, err));
out:
    return st;
}

/* Whether a text is longer than the context. Then the KV cache is useless, and the text is
 * generated to its end at once. */
static bool outgrows(const lines *l, const dt_text *text)
{
    return text->count > l->from.model->config.decoder.context;
}

/* Start the next line as an additional sequence; it may already end here. */
static dt_status begin(lines *l, dt_error *err)
{
    int64_t sequence = l->active_count;
    dt_text *text;
    dt_status st = DT_OK;

    l->active[sequence] = l->begun++;
    text = text_of(l, sequence);
    DT_TRY(dt_model_replace(l->from.model, sequence, DT_SEQUENCE_EMPTY, err));
    do
        DT_TRY(grow_alone(l, sequence, err));
    while (!text->done && outgrows(l, text));
    l->active_count += !text->done;
out:
    return st;
}

/* Remove an ended sequence; the last one takes its place. */
static dt_status leave(lines *l, int64_t sequence, dt_error *err)
{
    int64_t last = l->active_count - 1;
    dt_status st = DT_OK;

    if (sequence != last)
        DT_TRY(dt_model_replace(l->from.model, sequence, last, err));
    l->active[sequence] = l->active[last];
    l->active_count = last;
out:
    return st;
}

static dt_status grow_each(lines *l, dt_error *err)
{
    dt_device *device = &l->from.device;
    dt_tensor tokens = dt_tensor_2d(l->from.tokens_in.data, DT_I32, l->active_count, 1);
    dt_status st = DT_OK;

    for (int64_t k = 0; k < l->active_count; k++) {
        const dt_text *text = text_of(l, k);

        l->newest[k] = text->tokens[text->count - 1];
    }
    DT_TRY(device->copy_in(device, tokens.data, l->newest,
                           (size_t)l->active_count * sizeof *l->newest, err));
    DT_TRY(dt_model_extend_each(l->from.model, &tokens, l->logits, err));
    for (int64_t k = 0; k < l->active_count; k++)
        DT_TRY(take(l, k, l->logits + k * l->vocab, err));
out:
    return st;
}

static dt_status end_some(lines *l, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t k = l->active_count - 1; k >= 0; k--) {
        while (!text_of(l, k)->done && outgrows(l, text_of(l, k)))
            DT_TRY(grow_alone(l, k, err));
        if (text_of(l, k)->done)
            DT_TRY(leave(l, k, err));
    }
out:
    return st;
}

/* Pass the finished lines to the caller, in their order. */
static dt_status give_line(lines *l, dt_error *err)
{
    const dt_continue_options *options = l->options;
    dt_status st = DT_OK;

    for (; l->given < l->begun && l->items[l->given].text.done; l->given++) {
        line *next_line = &l->items[l->given];

        DT_TRY(options->emit(options->context, next_line->prompt, next_line->length,
                             &next_line->text, err));
        dt_text_close(&next_line->text);
    }
out:
    return st;
}

/* Search one line at a time: the beams use all sequences of the model. */
static dt_status search_next(lines *l, dt_error *err)
{
    dt_status st = dt_text_search(&l->items[l->begun].text, &l->from, err);

    if (st != DT_OK)
        dt_error_prefix(err, "line %lld", (long long)number_of(l->options, l->begun) + 1);
    l->begun++;
    return st;
}

static dt_status grow(lines *l, dt_error *err)
{
    dt_status st = DT_OK;

    if (searches(l))
        return search_next(l, err);
    while (l->active_count < l->batch && l->begun < l->count)
        DT_TRY(begin(l, err));
    if (l->active_count > 0) {
        DT_TRY(grow_each(l, err));
        DT_TRY(end_some(l, err));
    }
out:
    return st;
}

void dt_continued_line(dt_strbuf *out, const char *prompt, size_t length, const dt_text *text)
{
    size_t from = out->length;

    dt_utf8_add_valid(out, prompt, length);
    dt_utf8_add_valid(out, text->text.data, text->text.length);
    for (size_t i = from; i < out->length; i++)
        if (out->data[i] == '\n' || out->data[i] == '\r')
            out->data[i] = ' ';
    dt_strbuf_add_char(out, '\n');
}

dt_status dt_continue(int64_t *step, const dt_continue_options *options, dt_error *err)
{
    lines l = {.options = options};
    dt_status st = DT_OK;

    DT_TRY(open_lines(&l, err));
    *step = dt_checkpoint_get_info(l.from.checkpoint)->step;
    while (l.given < l.count) {
        if (options->before != NULL)
            DT_TRY(options->before(options->context, err));
        DT_TRY(grow(&l, err));
        DT_TRY(give_line(&l, err));
    }
out:
    close_lines(&l);
    return st;
}
