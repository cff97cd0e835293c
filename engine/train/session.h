/* session: everything that one rank holds while it trains, from the plan to the first step.
 *
 * Purpose    opens the parts in the order in which they need each other, and closes them in the
 *            other: device, data, model, communicator, strategy, checkpoint that is resumed
 * Ownership  owns all of it but plan and events
 * Errors     what the parts say. A rank that fails here ends; the others learn it from the agent
 */
#ifndef DT_ENGINE_TRAIN_SESSION_H
#define DT_ENGINE_TRAIN_SESSION_H

#include "engine/channel/events.h"
#include "engine/comm/comm.h"
#include "engine/comm/mesh.h"
#include "engine/data/data.h"
#include "engine/device/device.h"
#include "engine/model/model.h"
#include "engine/optim/scaler.h"
#include "engine/strategy/strategy.h"
#include "engine/train/best.h"
#include "engine/train/fault.h"
#include "recipes/plan.h"

typedef struct dt_train_session {
    const dt_plan *plan;     /* borrowed */
    const dt_recipe *recipe; /* the plan's, with steps derived where epochs are given */
    dt_recipe resolved;      /* what it points to */
    dt_events *events;       /* borrowed */
    dt_mesh mesh;            /* of the ranks */
    int64_t replicas;        /* of this rank (dp); else 1 */

    dt_device device;
    struct dt_nvml *nvml; /* of a GPU; NULL where the driver does not tell */
    dt_dataset *dataset;
    json_t *fingerprint; /* of the data */
    bool new_data;       /* others than the checkpoint's, as was asked for */
    dt_sampler sampler;
    dt_model *model;
    dt_comm comm; /* of the whole run */
    dt_strategy_state state;
    struct dt_weights
        *weights;          /* while it opens: what the model begins from; NULL: drawn, or resumed */
    dt_micro_batch batch;  /* owns its inputs' memory */
    dt_micro_batch *parts; /* (replicas), of sentence pairs: in that memory; else NULL */

    struct dt_valid_bleu *bleu; /* NULL: nothing is translated */

    struct dt_checkpoint_writer *writer; /* NULL: every save is waited for */
    dt_comm writer_comm;

    dt_scaler scaler;
    int64_t epoch_saved;   /* the sampler's epoch when checkpoints of epochs were last looked at */
    int64_t epoch_valid;   /* the same, of evaluations */
    int64_t step;          /* steps done: optimizer and schedule stand here */
    double loss;           /* of the last step; NaN before the first */
    double valid_loss;     /* of the last evaluation; NaN before the first */
    double valid_bleu;     /* the same, where translations are looked at */
    int64_t compared_step; /* after which the replicas were compared last; -1: not yet */
    int64_t valid_step;    /* whose it is; -1: none of this attempt */
    dt_best best;          /* of the run */
    double matmul_flops;   /* measured at the start */
    double start_seconds;  /* when this attempt started, for the time limit */
    dt_faults faults;      /* planted ones; usually none */
    bool stopped;          /* asked to stop before the first step: not an error */
} dt_train_session;

dt_status dt_train_session_open(dt_train_session *out, const dt_plan *plan, int64_t rank,
                                dt_events *events, dt_error *err);
void dt_train_session_close(dt_train_session *session); /* accepts a zeroed or half-built one */

/* --- samples.c */
/* The samples of this rank in a micro-step of the current step, into the batch. */
dt_status dt_train_session_fill(dt_train_session *session, int64_t micro_step, dt_error *err);
/* Validation samples of one pass, of all ranks together; what it evaluates on, and of those the share of
 * this rank from `first` on, into the batch: where they are over, samples that count nothing. */
int64_t dt_train_session_valid_per_pass(const dt_train_session *session);
int64_t dt_train_session_valid_count(const dt_train_session *session);
dt_status dt_train_session_fill_valid(dt_train_session *session, int64_t first, dt_error *err);
/* Tokens or rows that a step is counted as; of sentence pairs its target tokens, and before it is known
 * those of a mean one. */
int64_t dt_train_session_items(const dt_train_session *session, int64_t valid_targets);
double dt_train_session_mean_items(const dt_train_session *session);
/* Samples of one step, over all ranks and micro-steps. Of sentence pairs a sample is a batch. */
int64_t dt_train_session_samples_per_step(const dt_train_session *session);
/* Of those, the first of this rank in a micro-step; those of its batch follow. */
int64_t dt_train_session_first_sample(const dt_train_session *session, int64_t micro_step);
/* Whether an `every`th epoch (0: none) has ended since *seen, the sampler's epoch when this was last
 * asked; sets it. */
bool dt_train_session_ends_epoch(const dt_train_session *session, int64_t *seen, int64_t every);
/* After a step that used samples up and does not count: what is left of the epochs is less. */
void dt_train_session_count_steps(dt_train_session *session);

#endif
