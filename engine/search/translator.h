/* translator: translates sentences with beam search, several at once.
 *
 * At once       up to config.sequences of the model; when a sentence is done the next takes its place, so
 *               none waits for the longest and nothing is padded. Each source is read alone;
 *               then each pass adds a token to every hypothesis of all sentences
 * The same      on a CPU a sentence gets the same bits as alone, whatever the others are, if there are at
 *               most DT_TRANSLATIONS_EXACT hypotheses in total
 * Search        beam.h
 * Length        at most config.decoder.context tokens, exactly as many with past_end; the source at most config.tokens
 * Threads       one
 */
#ifndef DT_ENGINE_SEARCH_TRANSLATOR_H
#define DT_ENGINE_SEARCH_TRANSLATOR_H

#include "base/strbuf.h"
#include "engine/data/sides.h"
#include "engine/model/model.h"
#include "engine/search/beam.h"

typedef struct dt_translator dt_translator;

/* Number of elements of `ids`, I32 device memory, for a model of this config
 * (dt_translations_configure). */
int64_t dt_translator_ids(const dt_model_config *config);
/* Bytes of host memory that it allocates. */
int64_t dt_translator_bytes(const dt_model_config *config);

/* Everything is borrowed. If the model cannot translate, the first run fails. DT_ERR_NOMEM. */
dt_status dt_translator_open(dt_translator **out, dt_model *model, const dt_tensor *ids,
                             const dt_sides *sides, double length_penalty, bool past_end,
                             dt_error *err);
void dt_translator_close(dt_translator *translator); /* accepts NULL */

/* Callbacks: the source of sentences, and the receiver of translations. */
typedef struct dt_translator_work {
    /* The next source with its end token, borrowed until the next call; *source NULL: no more. */
    dt_status (*next)(void *context, const int32_t **source, int64_t *count, dt_error *err);
    /* Source i, counted from 0, is translated; called in any order. If the score is not finite, the
     * model's outputs were not. The tokens are valid during the call. */
    dt_status (*done)(void *context, int64_t i, const dt_beam_result *found, dt_error *err);
    void *context;
} dt_translator_work;

/* Translate until there is no next source. An error of a callback ends it. */
dt_status dt_translator_run(dt_translator *translator, const dt_translator_work *work,
                            dt_error *err);

/* Replace `out` by the text of a sentence, as one line. */
void dt_translator_line(dt_strbuf *out, const dt_side *side, const int32_t *ids, int64_t count);

#endif
