/* evaluate: the loss on the validation text.
 *
 * Shapes     evaluate.sequences of them (of sentence pairs as many batches as have those), evenly spread over the text (0: all), divided among the
 *            data ranks in turns. One that runs out continues with sequences that count nothing, so
 *            that all make the same number of passes.
 * Formula    sum of token losses / tokens, both over all ranks: not a mean of means
 */
#ifndef DT_ENGINE_TRAIN_EVALUATE_H
#define DT_ENGINE_TRAIN_EVALUATE_H

#include "engine/train/session.h"

/* Collective. *evaluated: session->valid_loss has been set; not where there is no validation text,
 * nor where a rank was asked to stop, which is looked for before every pass: *stopped. */
dt_status dt_evaluate(dt_train_session *session, bool *evaluated, bool *stopped, dt_error *err);

#endif
