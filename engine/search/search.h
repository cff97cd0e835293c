/* search: the likeliest sequence by beam search, and translations of sentences by it. */
#ifndef DT_ENGINE_SEARCH_SEARCH_H
#define DT_ENGINE_SEARCH_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "engine/data/sides.h"
#include "engine/model/model.h"

/* beam: finds the likeliest sequence by beam search, for translations like fairseq's SequenceGenerator, for
 * texts like transformers' generate with early_stopping.
 *
 * Search    hypotheses ("versions") begin with the end token. In each step the 2 * beams likeliest
 *           continuations are considered: those among the first `beams` that end are finished, the first
 *           `beams` that do not end continue. The search ends when `beams` are finished, or at `most`
 *           tokens, where all must end; an empty translation is not allowed. A text can be empty, and
 *           at `most` tokens it is finished as it is. past_end: a translation ends at `most` tokens only
 * Score     sum of log-probabilities / length^length_penalty, both including the end token; the result
 *           is the finished hypothesis with the highest score. One beam is greedy search
 * Ties      the earlier hypothesis wins, then the lower id
 * Threads   one
 */

typedef struct dt_beam_options {
    int64_t beams, vocab;
    int64_t ids;  /* only ids below this are allowed; 0: all */
    int64_t most; /* maximum tokens, including the end; for translations at least 2 */
    double length_penalty;
    int32_t end, pad; /* padding is never chosen; -1: none */
    bool past_end;
    bool texts;
    const int32_t *ends; /* for texts: ends_count further tokens that end a text; borrowed */
    int64_t ends_count;
} dt_beam_options;

/* Write logits (versions, vocab) after each hypothesis. It ended in newest[k] and continues
 * parents[k] of the previous call; parents is NULL in the first call, where the newest token is
 * `end`. The logits may be overwritten later. */
typedef dt_status dt_beam_next(void *self, const int32_t *newest, const int32_t *parents,
                               int64_t versions, float *logits, dt_error *err);

typedef struct dt_beam_result {
    int32_t *tokens; /* without the end token; the caller frees them */
    int64_t count;
    double score;
} dt_beam_result;

/* --- step by step, for several searches at once */

typedef struct dt_beam dt_beam;

/* DT_ERR_NOMEM. The options are borrowed until dt_beam_close. */
dt_status dt_beam_open(dt_beam **out, const dt_beam_options *options, dt_error *err);
/* Accepts NULL. */
void dt_beam_close(dt_beam *beam);

/* The hypotheses to continue; none if the search has ended. newest: the last token of each;
 * parents: which hypothesis of the previous step it continues (NULL before the first step). Valid
 * until the next step. */
int64_t dt_beam_versions(const dt_beam *beam);
const int32_t *dt_beam_newest(const dt_beam *beam);
const int32_t *dt_beam_parents(const dt_beam *beam);
/* Choose the next tokens. logits[k]: (vocab), after hypothesis k. */
void dt_beam_step(dt_beam *beam, const float *const *logits);
/* The result of an ended search; call once. */
dt_beam_result dt_beam_take(dt_beam *beam);

/* --- a whole search */

/* DT_ERR_NOMEM, or the error of `next`; then there is nothing to free. */
dt_status dt_beam_search(dt_beam_result *out, const dt_beam_options *options, dt_beam_next *next,
                         void *self, dt_error *err);

/* translator: translates sentences with beam search, several at once.
 *
 * At once       up to config.sequences of the model; when a sentence is done the next takes its place, so
 *               none waits for the longest and nothing is padded. Each source is read alone;
 *               then each pass adds a token to every hypothesis of all sentences
 * The same      on a CPU a sentence gets the same bits as alone, whatever the others are, if there are at
 *               most DT_TRANSLATIONS_EXACT hypotheses in total
 * Search        dt_beam_search
 * Length        at most config.decoder.context tokens, exactly as many with past_end; the source at most config.tokens
 * Threads       one
 */

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
