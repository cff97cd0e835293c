/* translator: sentences of the source language become sentences of the target language, side by side.
 *
 * Side by side  as many as config.sequences of the model; where one is done the next takes its place, so that
 *               none waits for the longest of its neighbours and nothing is padded. Each source is read alone;
 *               then a pass adds a token to every version of all of them
 * The same      on a CPU a sentence has the bits that it has alone, whatever stands beside it, as long as all
 *               versions are DT_TRANSLATIONS_EXACT or fewer
 * Search        beam.h
 * Length        as many tokens as config.decoder.context at most; the source config.tokens at most
 * Threads       one
 */
#ifndef DT_ENGINE_SEARCH_TRANSLATOR_H
#define DT_ENGINE_SEARCH_TRANSLATOR_H

#include "base/strbuf.h"
#include "engine/data/sides.h"
#include "engine/model/model.h"
#include "engine/search/beam.h"

typedef struct dt_translator dt_translator;

/* Elements of `ids`, device memory of I32, for a model of this config (dt_translations_configure). */
int64_t dt_translator_ids(const dt_model_config *config);
/* Memory of the host. */
int64_t dt_translator_bytes(const dt_model_config *config);

/* Everything is borrowed. Of a model that translates nothing the first run says so. DT_ERR_NOMEM. */
dt_status dt_translator_open(dt_translator **out, dt_model *model, const dt_tensor *ids,
                             const dt_sides *sides, double length_penalty, dt_error *err);
void dt_translator_close(dt_translator *translator); /* NULL is accepted */

/* What there is to translate, and who takes it. */
typedef struct dt_translator_work {
    /* The next source with its end, lent until it is asked again; *source NULL: there is no more. */
    dt_status (*next)(void *context, const int32_t **source, int64_t *count, dt_error *err);
    /* Source i, counted from 0, is done, in any order. A score that is not finite: the model's numbers are
     * not. Its tokens are lent for the call. */
    dt_status (*done)(void *context, int64_t i, const dt_beam_result *found, dt_error *err);
    void *context;
} dt_translator_work;

/* Until there is no more; what either function returns ends it. */
dt_status dt_translator_run(dt_translator *translator, const dt_translator_work *work,
                            dt_error *err);

/* Replaces `out` by the text of a sentence, which is one line. */
void dt_translator_line(dt_strbuf *out, const dt_side *side, const int32_t *ids, int64_t count);

#endif
