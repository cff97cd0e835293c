/* evaluate: computes the loss on the validation data.
 *
 * Shapes     evaluate.sequences sequences (0: all), evenly spaced over the data and dealt out to the data
 *            ranks in turn; for sentence pairs, as many batches as contain that many pairs. A rank that
 *            has none left continues with sequences that do not count, so that all ranks make the same
 *            number of passes.
 * Formula    sum of token losses / tokens, both over all ranks: not a mean of means
 */
#ifndef DT_ENGINE_TRAIN_EVALUATE_H
#define DT_ENGINE_TRAIN_EVALUATE_H

#include "engine/train/session.h"

/* Collective. *evaluated: session->valid_loss was set; false if there are no validation data.
 * *stopped: a rank was asked to stop, which is checked before every pass; nothing is evaluated
 * then. */
dt_status dt_evaluate(dt_train_session *session, bool *evaluated, bool *stopped, dt_error *err);

#endif
