/* evaluate: the loss on the validation text.
 *
 * Shapes     evaluate.sequences of them, evenly spread over the text (0: all), divided among the
 *            ranks in turns. A rank that runs out goes on with sequences that count nothing, so
 *            that all make the same number of passes.
 * Formula    sum of token losses / tokens, both over all ranks: not a mean of means
 */
#ifndef DT_ENGINE_EVALUATE_H
#define DT_ENGINE_EVALUATE_H

#include "engine/session.h"

/* Sets session->valid_loss, and leaves it alone where there is no validation text. All ranks
 * call it. *evaluated says which. */
dt_status dt_evaluate(dt_session *session, bool *evaluated, dt_error *err);

#endif
