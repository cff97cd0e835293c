#include "engine/generate/generate.h"

#include <stdlib.h>
#include <string.h>

/* Pass on the new text that later tokens can no longer change. */
static dt_status give(const dt_generate_options *options, const dt_text *text, size_t *given,
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
    dt_model_text of;
    dt_status st = DT_OK;
    size_t given = 0;

    *result = (dt_generated){0};
    DT_TRY(dt_loaded_open(&from, options->checkpoint, err));
    DT_TRY(dt_loaded_open_model(&from, options->device, options->threads, options->precision, &room,
                                err));
    DT_TRY(dt_model_text_of(&of, from.model, err));
    DT_TRY(dt_text_open(&text, &from, &options->rules, options->prompt, strlen(options->prompt),
                        options->rules.sampling.seed, err));
    logits = calloc((size_t)of.vocab, sizeof *logits);
    if (logits == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the logits of %lld tokens", (long long)of.vocab);
    if (options->rules.beams > 1) {
        DT_TRY(dt_text_search(&text, &from, err));
        DT_TRY(give(options, &text, &given, err));
    }
    while (!text.done) {
        DT_TRY(dt_text_logits(logits, &text, &from, 0, err));
        DT_TRY(dt_text_take(&text, logits, err));
        DT_TRY(give(options, &text, &given, err));
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
