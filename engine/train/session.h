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

/* fault: injects the faults that `dtrun smoke` uses to check how a run recovers.
 *
 * DTRUN_FAULT  "kill 1@3", "hang 0@5", "slow 1@2x4", "full 0@6", "flip 1@7", separated by ';': FAULT RANK@STEP,
 *              the fault happens to that rank after that step
 *                kill  the process gets SIGKILL
 *                hang  the process gets SIGSTOP
 *                slow  every later step takes the given number of times as long
 *                full  files can no longer grow, as on a full disk, for the rest of the process
 *                flip  one bit of the rank's parameters is inverted (train_int.h)
 * Only the first attempt of a run has faults, so that a test sees the recovery. The variable is documented
 * only with smoke, so that nobody sets it by accident.
 */

typedef enum dt_fault_kind {
    DT_FAULT_KILL,
    DT_FAULT_HANG,
    DT_FAULT_SLOW,
    DT_FAULT_FULL,
    DT_FAULT_FLIP
} dt_fault_kind;

typedef struct dt_fault {
    dt_fault_kind kind;
    int64_t rank, step;
    double times; /* factor of the step time, for a slow fault */
} dt_fault;

enum { DT_FAULTS_MAX = 16 };

typedef struct dt_faults {
    dt_fault items[DT_FAULTS_MAX];
    int count; /* number of faults of this rank */
} dt_faults;

/* Parse `text` and keep the faults of `rank`. `text` can be NULL: no faults. DT_ERR_USAGE if it is
 * malformed. */
dt_status dt_faults_read(dt_faults *out, const char *text, int64_t rank, dt_error *err);

/* Trigger the faults that are due after `step` steps of the run, the last of which took `seconds`.
 * Returns true if a flip is due, which the caller must perform. */
bool dt_faults_step(const dt_faults *faults, int64_t step, double seconds);

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
