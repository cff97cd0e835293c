#include "engine/generate/translate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/generate/loaded.h"
#include "engine/search/translator.h"
#include "engine/tokens/text_lines.h"

#include "base/banned.h"

typedef struct translation {
    dt_loaded from;
    dt_side_encoder encoder;
    dt_translator translator;
    dt_ids source;
    dt_strbuf line;
} translation;

static dt_status open_translation(translation *t, const dt_translate_options *options,
                                  dt_error *err)
{
    const dt_sides *sides;
    dt_status st = DT_OK;

    DT_TRY(dt_loaded_open(&t->from, options->checkpoint, err));
    sides = dt_tokenizer_sides(t->from.tokenizer);
    if (sides == NULL)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "the run learned no pairs of sentences, so that it translates no lines");
    DT_TRY(dt_loaded_open_model(&t->from, options->device, options->threads, options->precision,
                                &(dt_loaded_room){.batch = options->beams}, err));
    DT_TRY(dt_side_encoder_open(&t->encoder, sides->source, err));
    t->translator = dt_translator_of(t->from.model, &t->from.tokens_in, sides, options->beams,
                                     options->length_penalty);
out:
    return st;
}

static void close_translation(translation *t)
{
    dt_side_encoder_close(&t->encoder);
    dt_ids_release(&t->source);
    dt_strbuf_release(&t->line);
    dt_loaded_close(&t->from);
}

static dt_status translate_line(translation *t, const dt_translate_options *options,
                                const char *text, size_t length, dt_error *err)
{
    int64_t most = t->from.model->config.tokens;
    dt_beam_result found = {0};
    dt_status st = DT_OK;

    t->source.count = 0;
    DT_TRY(dt_side_encode(&t->source, &t->encoder, text, length, err));
    if ((int64_t)t->source.count > most)
        DT_THROW(err, DT_ERR_USAGE,
                 "it has %lld tokens, and the run learned of sentences of %lld at most",
                 (long long)t->source.count, (long long)most);
    DT_TRY(
        dt_translator_run(&found, &t->translator, t->source.items, (int64_t)t->source.count, err));
    if (!isfinite(found.score))
        DT_THROW(err, DT_ERR_CORRUPT,
                 "the model's numbers are not finite: the run diverged before this checkpoint");
    dt_translator_line(&t->line, t->translator.target, found.tokens, found.count);
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
    translation t = {.source = {0}};

    dt_strbuf_init(&t.line);
    DT_TRY(open_translation(&t, options, err));
    for (; dt_text_lines_next(&text, &length, &lines); line++) {
        st = translate_line(&t, options, text, length, err);
        if (st != DT_OK)
            dt_error_prefix(err, "line %lld", (long long)line);
        DT_TRY(st);
    }
out:
    close_translation(&t);
    return st;
}
