/* valid_bleu: computes BLEU on the validation sentence pairs during training.
 *
 * Pairs      those that the validation loss is computed on, each translated by one data rank
 * Search     as in `dtrun generate --input`, with 'evaluate.beam' and a length penalty of 1
 * Score      BLEU with 13a tokenization (engine/bleu/bleu.h) of detokenized text. A target word that is
 *            missing in the dictionary never matches
 * Weights    a second model with buffers for incremental decoding uses the training weights in place or,
 *            if the strategy does not keep them gathered, copies gathered once per evaluation
 */
#ifndef DT_ENGINE_TRAIN_VALID_BLEU_H
#define DT_ENGINE_TRAIN_VALID_BLEU_H

#include "engine/train/session.h"

/* Call once the strategy is set up. If the recipe asks for BLEU, allocates session->bleu. */
dt_status dt_valid_bleu_open(dt_train_session *session, dt_error *err);
/* bytes of memory it has allocated; NULL: 0 */
int64_t dt_valid_bleu_bytes(const struct dt_valid_bleu *bleu);
void dt_valid_bleu_close(struct dt_valid_bleu *bleu); /* accepts NULL */

/* Collective; call before the first pass of an evaluation. */
dt_status dt_valid_bleu_begin(dt_train_session *session, dt_error *err);
/* Collective: translates the sentences in each rank's batch. *stopped: a rank was asked to stop
 * before all were translated. */
dt_status dt_valid_bleu_add(dt_train_session *session, bool *stopped, dt_error *err);
/* Collective: returns in *out the BLEU over all ranks. */
dt_status dt_valid_bleu_end(double *out, dt_train_session *session, dt_error *err);

#endif
