/* replicas: checks that ranks which should hold the same parameters still do, bit by bit.
 *
 * Purpose   under ddp every rank holds all parameters, and only identical updates from identical gradients
 *           keep them equal. A bit that flips in the memory of one rank, or one wrong computation, stays:
 *           it changes the gradients that all ranks sum, and no gradient norm shows it. So digests are
 *           compared before an evaluation and before a save, so that neither a loss nor a checkpoint
 *           comes from ranks that have drifted apart
 * Compared  processors with the same instruction set and number of threads, and GPUs of the same model:
 *           others may round differently
 * Cost      the parameters are read once, and two numbers per rank are summed
 * Not seen  a flip in a gradient before the reduction, which all ranks then receive; in data that only one
 *           rank holds (fsdp, dp); in data that are not parameters and do not affect any
 */
#ifndef DT_ENGINE_TRAIN_REPLICAS_H
#define DT_ENGINE_TRAIN_REPLICAS_H

#include "engine/train/session.h"

/* Compare the parameters of all ranks. All ranks call it after the same step; a second call for the
 * same step does nothing. DT_ERR_CORRUPT on all ranks if they differ; the message names the rank
 * that dt_replicas_odd_one returns. */
dt_status dt_replicas_compare(dt_train_session *session, dt_error *err);

/* Flip one bit of this rank's parameters: an injected fault (fault.h). */
dt_status dt_replicas_flip(dt_train_session *session, dt_error *err);

/* Among `count` ranks, returns the first whose number is shared by the fewest ranks of its own
 * kind; -1 if all ranks of a kind agree. *agreeing: how many ranks of its kind have another
 * number. numbers, kinds: (count). */
int64_t dt_replicas_odd_one(const double *numbers, const double *kinds, int64_t count,
                            int64_t *agreeing);

#endif
