#include "engine/generate/translate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/data/sides.h"
#include "engine/generate/beam.h"
#include "engine/generate/loaded.h"
#include "engine/tokens/text_lines.h"

#include "base/banned.h"

typedef struct translator {
    dt_loaded from;
    const dt_sides *sides;
    dt_side_encoder encoder;
    dt_beam_options beam;
    dt_ids source;
    dt_strbuf line;
} translator;

static dt_status open_translator(translator *t, const dt_translate_options *options, dt_error *err)
{
    const dt_model_config *config;
    dt_status st = DT_OK;

    DT_TRY(dt_loaded_open(&t->from, options->checkpoint, err));
    t->sides = dt_tokenizer_sides(t->from.tokenizer);
    if (t->sides == NULL)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "the run learned no pairs of sentences, so that it translates no lines");
    DT_TRY(dt_loaded_open_model(&t->from, options->device, options->threads, options->precision,
                                &(dt_loaded_room){.batch = options->beams}, err));
    DT_TRY(dt_side_encoder_open(&t->encoder, t->sides->source, err));
    config = &t->from.model->config;
    t->beam = (dt_beam_options){.beams = options->beams,
                                .vocab = config->decoder.vocab,
                                .most = config->decoder.context,
                                .length_penalty = options->length_penalty,
                                .end = t->sides->target->end,
                                .pad = t->sides->target->pad};
out:
    return st;
}

static void close_translator(translator *t)
{
    dt_side_encoder_close(&t->encoder);
    dt_ids_release(&t->source);
    dt_strbuf_release(&t->line);
    dt_loaded_close(&t->from);
}

static dt_status copy_ids(translator *t, dt_tensor *out, const int32_t *ids, int64_t rows,
                          int64_t columns, dt_error *err)
{
    dt_device *device = &t->from.device;

    *out = dt_tensor_2d(t->from.tokens_in.data, DT_I32, rows, columns);
    return device->copy_in(device, out->data, ids, (size_t)(rows * columns) * sizeof(*ids), err);
}

static dt_status next(void *self, const int32_t *newest, const int32_t *parents, int64_t versions,
                      float *logits, dt_error *err)
{
    translator *t = self;
    dt_tensor previous;
    dt_status st = DT_OK;

    DT_TRY(copy_ids(t, &previous, newest, versions, 1, err));
    DT_TRY(dt_model_translate_next(t->from.model, &previous, parents, logits, err));
out:
    return st;
}

static dt_status translate_line(translator *t, const dt_translate_options *options,
                                const char *text, size_t length, dt_error *err)
{
    int64_t most = t->from.model->config.tokens;
    dt_beam_result found = {0};
    dt_tensor source;
    dt_status st = DT_OK;

    t->source.count = 0;
    dt_strbuf_reset(&t->line);
    DT_TRY(dt_side_encode(&t->source, &t->encoder, text, length, err));
    if ((int64_t)t->source.count > most)
        DT_THROW(err, DT_ERR_USAGE,
                 "it has %lld tokens, and the run learned of sentences of %lld at most",
                 (long long)t->source.count, (long long)most);
    DT_TRY(copy_ids(t, &source, t->source.items, 1, (int64_t)t->source.count, err));
    DT_TRY(dt_model_translate(t->from.model, &source, err));
    DT_TRY(dt_beam_search(&found, &t->beam, next, t, err));
    if (!isfinite(found.score))
        DT_THROW(err, DT_ERR_CORRUPT,
                 "the model's numbers are not finite: the run diverged before this checkpoint");
    for (int64_t i = 0; i < found.count; i++)
        dt_side_decode(&t->line, t->sides->target, found.tokens[i]);
    for (size_t i = 0; i < t->line.length; i++) /* a line of input stays one line */
        if (t->line.data[i] == '\n' || t->line.data[i] == '\r')
            t->line.data[i] = ' ';
    while (t->line.length > 0 && t->line.data[t->line.length - 1] == ' ')
        t->line.data[--t->line.length] = '\0';
    DT_TRY(options->emit(options->context, t->line.data, t->line.length, found.score, err));
out:
    free(found.tokens);
    return st;
}

dt_status dt_translate(const dt_translate_options *options, dt_error *err)
{
    dt_text_lines lines = {options->text, options->text + options->length};
    dt_status st = DT_OK;
    const char *text;
    int64_t line = 1;
    size_t length;
    translator t = {.beam = {0}};

    dt_strbuf_init(&t.line);
    DT_TRY(open_translator(&t, options, err));
    for (; dt_text_lines_next(&text, &length, &lines); line++) {
        st = translate_line(&t, options, text, length, err);
        if (st != DT_OK)
            dt_error_prefix(err, "line %lld", (long long)line);
        DT_TRY(st);
    }
out:
    close_translator(&t);
    return st;
}
