/* evaluator: computes the result of a row of a task (evaluation.h) with a model.
 *
 * Tokens     as lm-evaluation-harness makes them: white space at the end of a prompt belongs to the choice; a choice has
 *            the tokens of prompt and choice after as many as the prompt alone has; the tokenizer's begin tokens
 *            precede every text, and its begin token, else its end-of-text token, stands for an empty prompt
 * Longer     than the context: a prompt loses its beginning; a text is read in windows of the context, of which each but
 *            the last sees one token of the window before
 * Generated  texts take the likeliest token, and end before one of `until`, at a token that ends texts, or after `tokens`
 * Errors     DT_ERR_USAGE naming task and row: a choice that is longer than the context or has no token of its own
 * Threads    one
 */
#ifndef DT_ENGINE_EVALUATION_EVALUATOR_H
#define DT_ENGINE_EVALUATION_EVALUATOR_H

#include "engine/data/data.h"
#include "engine/evaluation/evaluation.h"
#include "engine/model/model.h"

typedef struct dt_evaluator dt_evaluator;

typedef struct dt_evaluator_setup {
    const dt_tokenizer *tokenizer;
    const int32_t *first; /* tokens that start a text without a prompt, at least one */
    int64_t first_count;
    const dt_ids *ends; /* tokens that end texts */
    int64_t context;    /* maximum tokens of a pass */
    /* MAY: called before each pass; an error ends the evaluation */
    dt_status (*before)(void *self, dt_error *err);
    void *self;
} dt_evaluator_setup;

/* Borrows what `setup` points to. */
dt_status dt_evaluator_open(dt_evaluator **out, const dt_evaluator_setup *setup, dt_error *err);
void dt_evaluator_close(dt_evaluator *evaluator); /* accepts NULL */

/* Checks a row, and returns how many tokens a pass over it has at most; needs no model. dt_evaluator_run is for checked
 * rows. */
dt_status dt_evaluator_measure(int64_t *tokens, dt_evaluator *evaluator,
                               const dt_evaluation_row *row, dt_error *err);

/* Then: a model for incremental decoding of a sequence. */
dt_status dt_evaluator_use(dt_evaluator *evaluator, dt_model *model, dt_error *err);

/* *result: new reference, the result of the row. */
dt_status dt_evaluator_run(dt_evaluation_outcome *out, json_t **result, dt_evaluator *evaluator,
                           const dt_evaluation_row *row, dt_error *err);

#endif
