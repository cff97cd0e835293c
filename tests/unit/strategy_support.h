/* strategy_support: a small real model under a strategy, on one rank of any number of ranks.
 *
 * Each rank has its own batch, a function of its rank and the micro-step. Can be used in a forked rank: no cmocka here.
 */
#ifndef DT_TESTS_STRATEGY_SUPPORT_H
#define DT_TESTS_STRATEGY_SUPPORT_H

#include "engine/channel/events.h"
#include "engine/strategy/strategy.h"

#define SEQUENCES 2 /* per replica and micro-step */
#define TOKENS    8
#define LAYERS    4

typedef struct trainee {
    dt_device device;
    dt_model *model;
    dt_comm comm;
    dt_strategy_state state;
    int64_t steps;
} trainee;

/* Returns reshard_after_forward, reduce_each_micro_step, two moments, one replica, full sharding. */
dt_strategy_options default_options(void);

/* Opens a trainee with its own communicator, through `events` if there is more than one rank. */
dt_status open_trainee(trainee *out, const dt_strategy *strategy,
                       const dt_strategy_options *options, dt_dtype dtype, dt_events *events,
                       int64_t rank, int64_t world_size, dt_error *err);
/* The same on a mesh. */
dt_status open_trainee_on(trainee *out, const dt_strategy *strategy,
                          const dt_strategy_options *options, dt_dtype dtype, dt_events *events,
                          const dt_mesh *mesh, dt_error *err);
/* The config of the model, and a trainee with another one. */
dt_model_config trainee_config(dt_dtype dtype);
dt_status open_trainee_of(trainee *out, const dt_strategy *strategy,
                          const dt_strategy_options *options, const dt_model_config *config,
                          dt_events *events, const dt_mesh *mesh, dt_error *err);
void close_trainee(trainee *t);
/* Sets the base of an adapter to the initial values of a whole model, in pieces of 100 elements. */
dt_status set_trainee_base(trainee *t, dt_error *err);

/* Makes one step of AdamW (lr 1e-2, no decay) over `micro_steps`; *loss: the mean over all ranks. */
dt_status train_step(trainee *t, int64_t micro_steps, double *loss, dt_error *err);
/* The same with other arguments; counts the step itself. */
dt_status train_step_with(trainee *t, int64_t micro_steps, dt_optimizer_args args, double *loss,
                          dt_error *err);

/* Imports a's state into b. Both must have the same strategy, options and rank. */
dt_status hand_over(trainee *a, trainee *b, dt_error *err);

int64_t trainee_elems(const trainee *t); /* of all units */

#endif
