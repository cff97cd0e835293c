/* session: holds everything that a rank needs for training, and opens it up to the first step.
 *
 * Purpose    opens the parts in the order of their dependencies (device, data, model, communicator,
 *            strategy, checkpoint to resume from) and closes them in reverse order
 * Ownership  owns everything except plan and events
 * Errors     those of the parts. A rank that fails here exits; the others learn it from the agent
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
#include "engine/strategy/layer_comm.h"
#include "engine/strategy/strategy.h"
#include "engine/train/best.h"
#include "engine/train/fault.h"
#include "recipes/plan/plan.h"

typedef struct dt_train_session {
    const dt_plan *plan;
    /* points to `resolved` */
    const dt_recipe *recipe;
    dt_recipe resolved; /* the plan's recipe, with the steps that follow from epochs */
    dt_events *events;
    dt_mesh mesh;     /* arrangement of all ranks of the run */
    int64_t replicas; /* replicas in this process (dp); otherwise 1 */

    dt_device device;
    struct dt_nvml *nvml; /* reads metrics of the GPU; NULL: not available */
    dt_dataset *dataset;
    json_t *fingerprint; /* identifies the data (fingerprint.h) */
    bool new_data;       /* the data differ from the checkpoint's, as --new-data allows */
    dt_sampler sampler;
    dt_model *model;
    dt_comm comm; /* communicator of all ranks */
    /* of the ranks that divide layers, and of those that share parameters; zeroed: layers are whole,
     * or nothing is shared (session_mesh.c) */
    dt_layer_comm layer, sharers;
    dt_strategy_state state;
    /* weights to start from, only while the session opens; NULL: random or resumed */
    struct dt_weights *weights;
    dt_micro_batch batch; /* the batch that is filled; owns the memory of its inputs */
    /* (replicas) batches of sentence pairs, within the memory of `batch`; otherwise NULL */
    dt_micro_batch *parts;

    struct dt_valid_bleu *bleu; /* computes validation BLEU; NULL: not computed */

    /* saves in the background; NULL: training waits for every save */
    struct dt_checkpoint_writer *writer;
    dt_comm writer_comm;

    dt_scaler scaler;
    int64_t epoch_saved;   /* the sampler's epoch when checkpoint.every_epoch was last checked */
    int64_t epoch_valid;   /* like epoch_saved, for evaluate.every_epoch */
    int64_t step;          /* completed steps; position of optimizer and schedule */
    double loss;           /* loss of the last step; NaN before the first */
    double valid_loss;     /* loss of the last evaluation; NaN before the first */
    double valid_bleu;     /* BLEU of the last evaluation, if it is computed */
    int64_t compared_step; /* step at which the replicas were last compared; -1: not yet */
    int64_t valid_step;    /* step of valid_loss; -1: not evaluated in this attempt */
    dt_best best;          /* best score of the run */
    double matmul_flops;   /* FLOP rate of matrix products, measured at the start */
    double start_seconds;  /* when this attempt started, for the time limit */
    dt_faults faults;      /* injected faults; usually none */
    bool stopped;          /* a stop was requested before the first step; not an error */
} dt_train_session;

dt_status dt_train_session_open(dt_train_session *out, const dt_plan *plan, int64_t rank,
                                dt_events *events, dt_error *err);
/* accepts a zeroed or partly opened session */
void dt_train_session_close(dt_train_session *session);

/* Bytes sent by this rank so far: gradients and parameters, and sums within layers. */
int64_t dt_train_session_sent_bytes(const dt_train_session *session);

/* --- samples.c */
/* Fill session->batch with this rank's samples of a micro-step of the current step. */
dt_status dt_train_session_fill(dt_train_session *session, int64_t micro_step, dt_error *err);
/* valid_per_pass: validation samples of one pass, over all ranks. valid_count: samples that an
 * evaluation uses. fill_valid: fills the batch with this rank's share of the pass that starts at
 * sample `first`; past the end, with samples that do not count. */
int64_t dt_train_session_valid_per_pass(const dt_train_session *session);
int64_t dt_train_session_valid_count(const dt_train_session *session);
dt_status dt_train_session_fill_valid(dt_train_session *session, int64_t first, dt_error *err);
/* Number of tokens or rows of a step, for metrics. For sentence pairs: its target tokens.
 * mean_items: the average, for use before a step's pairs are known. */
int64_t dt_train_session_items(const dt_train_session *session, int64_t valid_targets);
double dt_train_session_mean_items(const dt_train_session *session);
/* Samples of one step, over all ranks and micro-steps. For sentence pairs, a sample is a batch. */
int64_t dt_train_session_samples_per_step(const dt_train_session *session);
/* Index, within the samples of the step, of this rank's first sample of a micro-step; the rest of
 * its batch follows. */
int64_t dt_train_session_first_sample(const dt_train_session *session, int64_t micro_step);
/* Whether an epoch that is a multiple of `every` (0: never) has ended since *seen, the sampler's
 * epoch at the previous call. Updates *seen. */
bool dt_train_session_ends_epoch(const dt_train_session *session, int64_t *seen, int64_t every);
/* Recompute the number of steps from the remaining epochs, after a skipped step has used up
 * samples. */
void dt_train_session_count_steps(dt_train_session *session);

#endif
