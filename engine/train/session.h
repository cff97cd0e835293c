/* session: holds everything that a rank needs for training, and opens it up to the first step.
 *
 * Purpose    opens the parts in the order of their dependencies (device, data, model, communicator,
 *            strategy, checkpoint to resume from) and closes them in reverse order
 * Ownership  owns everything except plan and events
 * Errors     those of the parts. A rank that fails here exits; the others learn it from the agent
 */
#ifndef DT_ENGINE_TRAIN_SESSION_H
#define DT_ENGINE_TRAIN_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/channel/events.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/comm/comm.h"
#include "engine/comm/mesh.h"
#include "engine/data/data.h"
#include "engine/device/device.h"
#include "engine/model/model.h"
#include "engine/ops/ops.h"
#include "engine/optim/schedule.h"
#include "engine/strategy/strategy.h"
#include "recipes/plan/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* best: tracks the best score of a run (dt_score_by, checkpoint.h); lower is better.
 *
 * A score becomes the saved best only once its checkpoint is complete. A background save ends some
 * steps after it began, or fails. Until then, whether a score between the saved best and the one
 * being saved is the best of the run depends on the outcome of that save.
 * Ties       count as better: the later checkpoint has trained longer
 */

typedef struct dt_best {
    double score;  /* best score whose checkpoint is complete; NaN: none */
    double saving; /* score of the save in progress, not worse than `score`; NaN: none */
} dt_best;

/* Whether the result of dt_best_is for `score` depends on the outcome of the save in progress. */
bool dt_best_depends(const dt_best *best, double score);
/* Whether no earlier score is better. If that depends on the save in progress, assumes that it
 * succeeds. */
bool dt_best_is(const dt_best *best, double score);

void dt_best_begin(dt_best *best, double score); /* call when the save of `score` begins */
/* that save has ended; no effect if none is in progress */
void dt_best_end(dt_best *best, bool whole);

/* A model beside the trained one (side_model.c). */
typedef struct dt_side_model {
    int64_t tokens; /* of the longest sequence; 0: no second model is used */
    dt_model *model;
    dt_device_arena memory;
    /* (units) copies of the weights; NULL: the training weights are used in place */
    void **weights, **frozen;
} dt_side_model;

/* What an evaluation leaves behind (evaluate.c). */
typedef struct dt_train_evaluation {
    double loss;   /* loss of the last evaluation; NaN before the first */
    double bleu;   /* its BLEU, if it is computed */
    int64_t step;  /* the step that was evaluated; -1: none in this attempt */
    int64_t epoch; /* the sampler's epoch when evaluate.every_epoch was last checked */
    struct dt_valid_bleu *translations; /* computes BLEU; NULL: not computed */
    struct dt_train_tasks *tasks;       /* evaluates 'evaluate.tasks'; NULL: there are none */
    int64_t tasks_step;                 /* the step whose tasks were evaluated; -1: none */
    struct dt_train_samples *samples;   /* generates 'evaluate.samples'; NULL: there are none */
    int64_t samples_step;               /* the step whose samples were generated; -1: none */
    struct dt_confusion *confusion;     /* counts classes; NULL: the model is not a classifier */
    dt_side_model side;                 /* of tasks and samples */
    unsigned missing;                   /* of this step: DT_CHECKPOINT_LACKS_VALIDATION | ... */
} dt_train_evaluation;

/* The saves of a run (saving.c). */
typedef struct dt_saving {
    int64_t epoch; /* the sampler's epoch when checkpoint.every_epoch was last checked */
    dt_best best;  /* best score of the run */
    /* saves in the background; NULL: training waits for every save */
    struct dt_checkpoint_writer *writer;
    dt_comm comm; /* communicator of the writer */
} dt_saving;

/* The data of a run, and the position in them (session_data.c). */
typedef struct dt_train_data {
    dt_dataset *dataset;
    dt_sampler sampler;
    json_t *fingerprint;   /* identifies the data (fingerprint.h) */
    bool replaces_resumed; /* the data differ from the checkpoint's, as --new-data allows */
} dt_train_data;

/* What is known of the machine (report.c). */
typedef struct dt_train_machine {
    struct dt_nvml *nvml;           /* reads metrics of the GPU; NULL: not available */
    double matmul_flops;            /* FLOP rate of matrix products, measured at the start */
    double memory_bytes_per_second; /* the same of a sum in memory; 0: unknown */
} dt_train_machine;

/* timed_ops: the ops of a device, of which the products and attention are timed (engine/stopwatch.h). The device
 * uses the table `ops`, which must live as long. Does nothing for a device whose ops return before they have run. */
typedef struct dt_timed_ops {
    dt_ops ops; /* first: device->ops points here */
    const dt_ops *inner;
} dt_timed_ops;

void dt_timed_ops_install(dt_timed_ops *timed, dt_device *device);

typedef struct dt_train_session dt_train_session;

/* A call after each step of the run, whose duration counts as a part of the step. `seconds`: how long the
 * step took. */
typedef dt_status dt_after_step(dt_train_session *session, double seconds, dt_error *err);

struct dt_train_session {
    const dt_plan *plan;
    const dt_recipe *recipe; /* points to `resolved` */
    dt_recipe resolved;      /* the plan's recipe, with the steps that follow from epochs */
    dt_events *events;
    dt_mesh mesh;     /* arrangement of all ranks of the run */
    int64_t replicas; /* replicas in this process (dp); otherwise 1 */

    dt_device device;
    dt_timed_ops timed_ops; /* what `device` computes with, timed */
    dt_train_machine machine;
    dt_train_data data;
    dt_model *model;
    dt_comm comm; /* communicator of all ranks */
    /* communicators of the ranks that divide layers, and of those that share parameters; zeroed: layers
     * are whole, or nothing is shared (session_mesh.c) */
    dt_layer_comm layer, sharers;
    dt_strategy_state state;
    /* weights to start from, only while the session opens; NULL: random or resumed */
    struct dt_weights *weights;
    json_t *base;         /* dt_checkpoint_info.base */
    dt_micro_batch batch; /* the batch that is filled; owns the memory of its inputs */
    /* (replicas) batches of sentence pairs, within the memory of `batch`; otherwise NULL */
    dt_micro_batch *pair_batches;

    dt_scaler scaler;
    int64_t step;          /* completed steps; position of optimizer and schedule */
    double loss;           /* loss of the last step; NaN before the first */
    int64_t compared_step; /* step at which the replicas were last compared; -1: not yet */
    dt_train_evaluation evaluation;
    dt_saving saving;
    double start_seconds; /* when this attempt started, for the time limit */
    bool stopped;         /* a stop was requested before the first step; not an error */

    struct dt_step_record *record; /* of what the steps compute (recording.c) */
    struct dt_flip *flip;          /* NULL: none (flip.c) */

    dt_after_step *after_step; /* NULL: none (fault.c) */
    void *after_step_state;    /* freed with the session */
};

dt_status dt_train_session_open(dt_train_session *out, const dt_plan *plan, int64_t rank,
                                dt_events *events, dt_error *err);
/* accepts a zeroed or partly opened session */
void dt_train_session_close(dt_train_session *session);

/* Bytes sent by this rank so far: gradients and parameters, and sums within layers. */
int64_t dt_train_session_sent_bytes(const dt_train_session *session);

/* --- session_data.c */
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
int64_t dt_train_session_items(const dt_train_session *session, double valid_targets);
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

/* Place the rank in the mesh. DT_ERR_RECIPE or DT_ERR_UNSUPPORTED if the recipe's 'tensor' does not fit. */
dt_status dt_session_place(dt_train_session *session, int64_t rank, dt_error *err);
/* Connect the ranks that divide layers, if the model is divided. Collective. */
dt_status dt_session_open_layers(dt_train_session *session, dt_error *err);
/* Open the data. resumed: info of the checkpoint, whose tokenizer the run keeps even if the text
 * has changed; NULL: a fresh start. DT_ERR_RECIPE if the data differ from the checkpoint's, unless
 * the plan allows new data. */
dt_status dt_session_open_data(dt_train_session *session, const dt_checkpoint_info *resumed,
                               dt_error *err);
/* Check that all ranks read the same data; otherwise they would draw different samples, make
 * different numbers of collective calls, and wait for each other. On a difference all ranks fail
 * with DT_ERR_RECIPE. */
dt_status dt_session_compare_data(dt_train_session *session, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
