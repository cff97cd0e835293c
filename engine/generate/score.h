/* score: computes the natural log-likelihood of lines under a checkpoint.
 *
 * A text       starts with the usual first tokens (the tokenizer's end-of-text token, or else a line break);
 *              then the line's tokens, then the end-of-text token if there is one
 * A pair       the target's tokens and its end, given the source
 * Numbers      agree with validation: their sum over the lines' tokens is the validation loss of these lines
 * Windows      a text longer than the context is split into windows of that length, each of which
 *              overlaps the previous one by half; each token is predicted once, with at least half a
 *              context before it (except in the first window)
 * Errors       DT_ERR_USAGE naming the line of a sentence that is longer than the context; else as in
 *              dt_generate
 */
#ifndef DT_ENGINE_GENERATE_SCORE_H
#define DT_ENGINE_GENERATE_SCORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct dt_score_lines {
    const char *text; /* lines; the last line break is optional. NULL: none */
    size_t length;
} dt_score_lines;

typedef struct dt_score_options {
    const char *checkpoint; /* checkpoint directory */
    dt_score_lines input;
    dt_score_lines target; /* translations, for a run on sentence pairs: as many lines */
    /* [lines]: numbers in a longer text, from 0, for messages; NULL: 0, 1, 2 ... */
    const int64_t *numbers;
    const char *device; /* device: "cpu" or "cuda:N" */
    int64_t threads;    /* CPU threads; 0: all cores */
    /* Called for each line in order; an error ends the evaluation. */
    dt_status (*emit)(void *context, double log_likelihood, int64_t tokens, dt_error *err);
    void *context;
} dt_score_options;

dt_status dt_score(const dt_score_options *options, dt_error *err);

#endif
