/* beam: the likeliest sequence that a search side by side finds, of translations as fairseq's SequenceGenerator has
 * it, of texts as transformers' generate with early_stopping.
 *
 * Search    versions begin with the end token. Of all that continue them the 2 * beams likeliest are
 *           looked at: those among the first `beams` that end are done, the first `beams` that do not
 *           continue. It is over when `beams` are done, or at `most` tokens, where all must end; one
 *           that ends at once is none. Texts may end at once, and at `most` tokens are done as they are
 * Score     sum of log-probabilities / length^length_penalty, the end counted in both; the highest of
 *           those done is the result. One beam is greedy search
 * Equals    the earlier version, the lower id
 * Threads   one
 */
#ifndef DT_ENGINE_SEARCH_BEAM_H
#define DT_ENGINE_SEARCH_BEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct dt_beam_options {
    int64_t beams, vocab;
    int64_t ids;  /* of them, the first that may be taken; 0: all */
    int64_t most; /* tokens, the end with them; of translations 2 or more */
    double length_penalty;
    int32_t end, pad; /* padding is never taken; -1: there is none */
    bool texts;
    const int32_t *ends; /* of texts: more tokens that end one, ends_count of them; borrowed */
    int64_t ends_count;
} dt_beam_options;

/* Logits (versions, vocab) behind each of `versions`, which ended in newest[k] and continues parents[k]
 * of the call before; parents NULL in the first call, where `end` is the newest. The logits may be written
 * over. */
typedef dt_status dt_beam_next(void *self, const int32_t *newest, const int32_t *parents,
                               int64_t versions, float *logits, dt_error *err);

typedef struct dt_beam_result {
    int32_t *tokens; /* without the end; the caller frees them */
    int64_t count;
    double score;
} dt_beam_result;

/* --- by steps, for who has several searches at once */

typedef struct dt_beam dt_beam;

/* DT_ERR_NOMEM. The options are borrowed until it is closed. */
dt_status dt_beam_open(dt_beam **out, const dt_beam_options *options, dt_error *err);
/* NULL is accepted. */
void dt_beam_close(dt_beam *beam);

/* Versions that are to be continued; none where the search is over. What each ended in, and which of those
 * before the last step it continues (NULL before the first): valid up to the next step. */
int64_t dt_beam_versions(const dt_beam *beam);
const int32_t *dt_beam_newest(const dt_beam *beam);
const int32_t *dt_beam_parents(const dt_beam *beam);
/* logits[k]: (vocab) behind version k. */
void dt_beam_step(dt_beam *beam, const float *const *logits);
/* What was found when it was over, once. */
dt_beam_result dt_beam_take(dt_beam *beam);

/* --- at once */

/* DT_ERR_NOMEM, or what next fails with; then there is nothing to free. */
dt_status dt_beam_search(dt_beam_result *out, const dt_beam_options *options, dt_beam_next *next,
                         void *self, dt_error *err);

#endif
