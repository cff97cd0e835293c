/* strategy_support: a small real model under a strategy, on one rank of any number.
 *
 * Each rank has a batch of its own, a function of its rank and the micro-step. Usable inside a
 * forked rank: no cmocka here.
 */
#ifndef DT_TESTS_STRATEGY_SUPPORT_H
#define DT_TESTS_STRATEGY_SUPPORT_H

#include "engine/channel/events.h"
#include "engine/strategy/strategy.h"

#define SEQUENCES 2 /* of a replica and micro-step */
#define TOKENS    8
#define LAYERS    4

typedef struct trainee {
    dt_device device;
    dt_model *model;
    dt_comm comm;
    dt_strategy_state state;
    int64_t steps;
} trainee;

/* reshard_after_forward, reduce_each_micro_step, two moments, one replica, shard full. */
dt_strategy_options default_options(void);

/* Opened for comm of its own, through `events` where there is more than one rank. */
dt_status open_trainee(trainee *out, const dt_strategy *strategy,
                       const dt_strategy_options *options, dt_dtype dtype, dt_events *events,
                       int64_t rank, int64_t world_size, dt_error *err);
void close_trainee(trainee *t);

/* One step of AdamW (lr 1e-2, no decay) over `micro_steps`; *loss: the mean over all ranks. */
dt_status train_step(trainee *t, int64_t micro_steps, double *loss, dt_error *err);
/* The same with other arguments; the step is counted here. */
dt_status train_step_with(trainee *t, int64_t micro_steps, dt_optimizer_args args, double *loss,
                          dt_error *err);

/* b resumes from a's state. Both are of the same strategy, options and rank. */
dt_status hand_over(trainee *a, trainee *b, dt_error *err);

int64_t trainee_elems(const trainee *t); /* of all units */

#endif
