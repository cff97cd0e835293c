/* translator: a sentence of the source language becomes one of the target language.
 *
 * Search     beam.h
 * Length     as many tokens as config.decoder.context at most; the source config.tokens at most
 * Threads    one
 */
#ifndef DT_ENGINE_SEARCH_TRANSLATOR_H
#define DT_ENGINE_SEARCH_TRANSLATOR_H

#include "base/strbuf.h"
#include "engine/data/sides.h"
#include "engine/model/model.h"
#include "engine/search/beam.h"

typedef struct dt_translator {
    dt_model *model; /* borrowed, and so is what it has its weights in */
    dt_tensor ids;   /* I32, device memory, borrowed: room for dt_translator_ids */
    const dt_side *target;
    dt_beam_options search;
} dt_translator;

/* What of its config a model that translates has beside that of one that infers: so many versions. */
void dt_translator_config(dt_model_config *config, int64_t beams);
/* Elements of `ids`. */
int64_t dt_translator_ids(const dt_model_config *config);

dt_translator dt_translator_of(dt_model *model, const dt_tensor *ids, const dt_sides *sides,
                               int64_t beams, double length_penalty);

/* source: with its end. A score that is not finite: the model's numbers are not. What is found is as
 * dt_beam_search has it. */
dt_status dt_translator_run(dt_beam_result *out, dt_translator *translator, const int32_t *source,
                            int64_t count, dt_error *err);

/* Replaces `out` by the text of a sentence, which is one line. */
void dt_translator_line(dt_strbuf *out, const dt_side *side, const int32_t *ids, int64_t count);

#endif
