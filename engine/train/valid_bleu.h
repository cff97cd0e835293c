/* valid_bleu: how near the translations of the validation pairs are to their targets, while a run trains.
 *
 * Pairs      those that the loss is evaluated on, each by one data rank
 * Search     as `dtrun generate --input` has it, with 'evaluate.beam' and a length penalty of 1
 * Score      BLEU by 13a's words (engine/bleu/bleu.h) of both sides as text. A word of a target that its
 *            dictionary lacks is matched by nothing
 * Weights    a second model, for sentences that grow, has those that train: where they are, or where the
 *            strategy keeps none for long, in memory of its own, gathered once an evaluation
 */
#ifndef DT_ENGINE_TRAIN_VALID_BLEU_H
#define DT_ENGINE_TRAIN_VALID_BLEU_H

#include "engine/train/session.h"

/* Takes its memory, where the recipe asks for it: session->bleu. Once the strategy is there. */
dt_status dt_valid_bleu_open(dt_train_session *session, dt_error *err);
int64_t dt_valid_bleu_bytes(const struct dt_valid_bleu *bleu); /* that it has taken; NULL: 0 */
void dt_valid_bleu_close(struct dt_valid_bleu *bleu);          /* NULL is accepted */

/* Collective: of an evaluation, before its first pass. */
dt_status dt_valid_bleu_begin(dt_train_session *session, dt_error *err);
/* Collective: translates what each rank has in its batch. *stopped: a rank was asked to stop before all
 * was done. */
dt_status dt_valid_bleu_add(dt_train_session *session, bool *stopped, dt_error *err);
/* Collective: of all ranks. */
dt_status dt_valid_bleu_end(double *out, dt_train_session *session, dt_error *err);

#endif
