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
#ifndef DT_ENGINE_SEARCH_BEAM_H
#define DT_ENGINE_SEARCH_BEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

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

#endif
