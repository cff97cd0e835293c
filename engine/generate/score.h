/* score: how well a checkpoint foretells lines: the log-likelihood (natural) of each.
 *
 * A text       after what a text begins with (the tokenizer's end of text, or where it has none a line break), the
 *              line's tokens, then the end of text where there is one
 * A pair       the target's tokens and its end, given the source
 * Numbers      those of validation: their sum over the lines' tokens is the validation loss of the same lines
 * Windows      of a text that is longer than the context: of that many tokens, each but the first half
 *              of what the one before foretold; a token is foretold once, from half a context or more
 * Errors       DT_ERR_USAGE for a sentence that is longer than the model sees, naming its line; else as
 *              dt_generate
 */
#ifndef DT_ENGINE_GENERATE_SCORE_H
#define DT_ENGINE_GENERATE_SCORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct dt_score_lines {
    const char *text; /* lines; the last may lack its line break. NULL: none */
    size_t length;
} dt_score_lines;

typedef struct dt_score_options {
    const char *checkpoint; /* directory */
    dt_score_lines input;
    dt_score_lines target; /* of a run on sentence pairs: as many */
    const int64_t
        *numbers;       /* [lines] of a longer text's, from 0, for messages; NULL: 0, 1, 2 ... */
    const char *device; /* "cpu" or "cuda:N" */
    int64_t threads;    /* CPU; 0: all cores */
    /* Of each line in its order; what it returns ends it. */
    dt_status (*emit)(void *context, double log_likelihood, int64_t tokens, dt_error *err);
    void *context;
} dt_score_options;

dt_status dt_score(const dt_score_options *options, dt_error *err);

#endif
