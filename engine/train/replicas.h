/* replicas: whether ranks that hold the same parameters still do, bit by bit.
 *
 * Purpose   under ddp every rank has all parameters, and nothing but the same update of the same gradients
 *           keeps them equal. A bit that flips in the memory of one rank, or a processor that computes
 *           wrongly once, stays there for good: it changes the gradients that all of them add up, and no
 *           norm tells. So digests are compared before an evaluation and before a save, and neither a
 *           loss nor a checkpoint is of ranks that have drifted apart
 * Compared  processors with the same instruction set and number of threads, cards of one model: others may round
 *           differently
 * Cost      the parameters are read once, and two numbers a rank are added up
 * Not seen  a flip in a gradient before it is added, which all ranks then have, in what one rank alone
 *           holds (fsdp, dp), or in what is not a parameter and never becomes one
 */
#ifndef DT_ENGINE_TRAIN_REPLICAS_H
#define DT_ENGINE_TRAIN_REPLICAS_H

#include "engine/train/session.h"

/* All ranks call it, after the same step; once a step it does something. DT_ERR_CORRUPT on all of them,
 * naming the rank where the others are more than it. */
dt_status dt_replicas_compare(dt_train_session *session, dt_error *err);

/* One bit of this rank's parameters becomes the other: planted (fault.h). */
dt_status dt_replicas_flip(dt_train_session *session, dt_error *err);

/* Of `count` ranks the first whose number fewest of its own kind share, -1: all of a kind have the same.
 * numbers, kinds: (count). */
int64_t dt_replicas_odd_one(const double *numbers, const double *kinds, int64_t count,
                            int64_t *agreeing);

#endif
