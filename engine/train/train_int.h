/* train_int: what works on a session: the speed of the machine, comparing replicas, injected faults,
 * evaluation, one step, the events of a rank, and saving. */
#ifndef DT_ENGINE_TRAIN_TRAIN_INT_H
#define DT_ENGINE_TRAIN_TRAIN_INT_H

#include "engine/checkpoint/writer.h"
#include "engine/evaluation/evaluation.h"
#include "engine/model/model.h"
#include "engine/record/record.h"
#include "engine/train/session.h"

/* machine_speed: measures the speed and memory of this machine at the start of a run.
 *
 * Units  floating point operations per second; bytes
 */

/* Measure the FLOP rate of the model's largest kind of matrix product in its compute type, the
 * reference for the reported utilization. Takes the fastest call within about a tenth of a second,
 * or on an asynchronous device the fastest series of calls. */
dt_status dt_measure_matmul(double *flops_per_second, const dt_model *model, dt_error *err);

/* Measure how fast the device adds numbers that are in its memory: bytes read and written a second. */
dt_status dt_measure_memory(double *bytes_per_second, const dt_model *model, dt_error *err);
/* Free memory of the device; 0 if unknown. */
int64_t dt_measure_free_memory(dt_device *device);

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

/* Compare the parameters of all ranks. All ranks call it after the same step; a second call for the
 * same step does nothing. DT_ERR_CORRUPT on all ranks if they differ; the message names the rank
 * that dt_replicas_odd_one returns. */
dt_status dt_replicas_compare(dt_train_session *session, dt_error *err);

/* What determines rounding on this rank and its part of the model, as text. */
dt_status dt_replicas_describe(char *out, size_t size, const dt_device *device, const dt_mesh *mesh,
                               dt_error *err);

/* Whether another rank holds the same parameters as this one. */
bool dt_replicas_exist(const dt_train_session *session);

/* Among `count` ranks, returns the first whose number is shared by the fewest ranks of its own
 * kind; -1 if all ranks of a kind agree. *agreeing: how many ranks of its kind have another
 * number. numbers, kinds: (count). */
int64_t dt_replicas_odd_one(const double *numbers, const double *kinds, int64_t count,
                            int64_t *agreeing);

/* fault: injects the faults that `dtrun smoke` uses to check how a run recovers. */

/* Read DTRUN_FAULT, and have the faults of this rank happen after their steps. Call it once the rank has its
 * place in the mesh. DT_ERR_USAGE if the variable is malformed. */
dt_status dt_faults_install(dt_train_session *session, dt_error *err);

/* valid_bleu: computes BLEU on the validation sentence pairs during training.
 *
 * Pairs      those that the validation loss is computed on, each translated by one data rank
 * Search     as in `dtrun generate --input`, with 'evaluate.beam' and a length penalty of 1
 * Score      BLEU with 13a tokenization (engine/bleu/bleu.h) of detokenized text. A target word that is
 *            missing in the dictionary never matches
 * Weights    a second model with buffers for incremental decoding uses the training weights in place or,
 *            if the strategy does not keep them gathered, copies gathered once per evaluation
 */

/* Call after the strategy is set up. If the recipe asks for BLEU, allocates session->evaluation.translations. */
dt_status dt_valid_bleu_open(dt_train_session *session, dt_error *err);
/* bytes of memory it has allocated; NULL: 0 */
int64_t dt_valid_bleu_bytes(const struct dt_valid_bleu *bleu);
void dt_valid_bleu_close(struct dt_valid_bleu *bleu); /* accepts NULL */

/* side_model: a second model of the same parameters, for incremental decoding of one sequence: tasks and samples.
 *
 * Weights    those of training, in place if the strategy keeps them gathered, else copied by dt_side_model_take
 * Passes     are in the precision of training, without dropout
 */

/* Have the model opened with room for a sequence of so many tokens, at most the context. */
void dt_side_model_need(dt_side_model *io, int64_t tokens);
/* Call after the strategy is set up. Opens nothing if nobody needs it. */
dt_status dt_side_model_open(dt_side_model *io, dt_train_session *session, dt_error *err);
void dt_side_model_close(dt_side_model *side); /* accepts a zeroed or partly opened struct */
int64_t dt_side_model_bytes(const dt_side_model *side);
/* Collective; call it before the first pass after a step. */
dt_status dt_side_model_take(dt_side_model *io, dt_train_session *session, dt_error *err);

/* tasks: evaluates the recipe's 'evaluate.tasks' (engine/evaluation/) during training.
 *
 * Rows       are dealt out to the data ranks in turn; every rank's outcomes are gathered, so that the metrics are those
 *            of one process
 * Weights    those of the side model
 * Training   is not changed: no state of it is written
 */

typedef struct dt_train_tasks dt_train_tasks;

/* Call after the strategy is set up. Reads and checks the files; sets session->evaluation.tasks if there are any.
 * DT_ERR_RECIPE naming file and line. */
dt_status dt_train_tasks_open(dt_train_session *session, dt_error *err);
/* Call once the side model is open. */
dt_status dt_train_tasks_use_model(dt_train_session *session, dt_error *err);
void dt_train_tasks_close(dt_train_tasks *tasks); /* accepts NULL */
/* Collective. *results: of all rows, on every rank, until the next call. *stopped: a rank was asked to stop; there are
 * no results then. */
dt_status dt_train_tasks_run(const dt_evaluation_results **results, dt_train_session *session,
                             bool *stopped, dt_error *err);

/* samples: generates a text for each of the recipe's 'evaluate.samples'.
 *
 * Prompts    are dealt out to the data ranks in turn; each is continued alone, as by `dtrun generate --prompt` with the
 *            seed 'evaluate.samples_seed' + its index
 * Texts      valid UTF-8 without NUL, at most DT_SAMPLE_BYTES
 * Not finite  logits end a text (DT_SAMPLE_DIVERGED), not the run
 * Training   is not changed: no state of it is written
 */

#define DT_SAMPLE_BYTES    65536 /* of a prompt or a text; the rest is cut off */
#define DT_SAMPLE_DIVERGED "not_finite"

typedef struct dt_train_samples dt_train_samples;

/* Call after the strategy is set up. Reads and checks the prompts; sets session->evaluation.samples if there are any.
 * DT_ERR_RECIPE naming the prompt. */
dt_status dt_train_samples_open(dt_train_session *session, dt_error *err);
void dt_train_samples_close(dt_train_samples *samples); /* accepts NULL */
/* Collective. *texts: on rank 0 [{"prompt", "text", "tokens", "ended"}], a new reference; NULL on others. *stopped: a
 * rank was asked to stop; there are no texts then. */
dt_status dt_train_samples_run(json_t **texts, dt_train_session *session, bool *stopped,
                               dt_error *err);

/* confusion: counts the rows of each class by the class that the model predicts, in each evaluation of a classifier.
 *
 * Rows       those of the validation loss; a row whose outputs are not finite counts nowhere
 * Limit      classifiers of more classes have no counts; the log says so
 */

#define DT_CONFUSION_CLASSES 100

/* Call after the model is open; sets session->evaluation.confusion if the model is a classifier. */
dt_status dt_confusion_open(dt_train_session *session, dt_error *err);
void dt_confusion_close(struct dt_confusion *confusion); /* accepts NULL */
/* Around the passes of an evaluation; the end is collective and sums over the ranks. */
void dt_confusion_begin(dt_train_session *session);
dt_status dt_confusion_end(dt_train_session *session, dt_error *err);
/* The counts of the last evaluation: [[..], ..], a row for each class. New reference. */
json_t *dt_confusion_to_json(const struct dt_confusion *confusion);

/* recording: opens the record of the rank (engine/record/record.h). */
dt_status dt_recording_open(dt_train_session *session, dt_error *err);

/* flip: inverts one bit of what a rank computes with, so that tests see whether the record shows it. Only in builds with
 * tests.
 *
 * DTRUN_TEST_FLIP  "KIND RANK@STEP SEED": in that step, of the input, of the gradients that the rank sends ("sent"), of
 *                  the summed gradients ("gradient"), after its update of the parameters ("weight") or of the moments
 *                  ("moment"). The place is drawn with the seed from what the record covers in that step; with
 *                  "anywhere" after the seed, from everything. Logged as an error, with its place
 */
#ifdef DT_TEST_FLIPS
dt_status dt_flip_open(dt_train_session *session, dt_error *err);
void dt_flip_close(dt_train_session *session);
void dt_flip_input(dt_train_session *session);
dt_status dt_flip_gradient(dt_train_session *session, dt_error *err);
dt_status dt_flip_state(dt_train_session *session, dt_error *err);
#else
static inline dt_status dt_flip_open(dt_train_session *session, dt_error *err)
{
    (void)session;
    (void)err;
    return DT_OK;
}
static inline void dt_flip_close(dt_train_session *session)
{
    (void)session;
}
static inline void dt_flip_input(dt_train_session *session)
{
    (void)session;
}
static inline dt_status dt_flip_gradient(dt_train_session *session, dt_error *err)
{
    (void)session;
    (void)err;
    return DT_OK;
}
static inline dt_status dt_flip_state(dt_train_session *session, dt_error *err)
{
    (void)session;
    (void)err;
    return DT_OK;
}
#endif

/* Compute the reference of all pairs of answers (reference.c); no effect on other data. Collective; once the weights are
 * loaded. */
dt_status dt_reference_compute(dt_train_session *session, dt_error *err);

/* evaluate: computes the loss on the validation data.
 *
 * Shapes     evaluate.sequences sequences (0: all), evenly spaced over the data and dealt out to the data
 *            ranks in turn; for sentence pairs, as many batches as contain that many pairs. A rank that
 *            has none left continues with sequences that do not count, so that all ranks make the same
 *            number of passes.
 * Formula    sum of token losses / tokens, both over all ranks: not a mean of means
 */

/* Collective. *evaluated: session->evaluation.loss was set; false if there are no validation data.
 * *stopped: a rank was asked to stop, which is checked before every pass; nothing is evaluated
 * then. */
dt_status dt_evaluate(dt_train_session *session, bool *evaluated, bool *stopped, dt_error *err);

/* step: one optimizer step over all ranks (train.c).
 *
 * Loss       summed over tokens, then divided once by the number of targets that count in the whole step (of
 *            conversations: the sum of their weights), over ranks and micro-steps; these are counted before the first
 *            forward pass
 * Samples    micro-step m of data rank r of R starts at sample (m * R + r) * sequences: the samples of a
 *            step do not depend on how it is divided
 * fp16       a step whose gradients overflow changes only the loss scale and the sampler's
 *            position (engine/optim/schedule.h)
 * Errors     DT_ERR_RECIPE if training has diverged, DT_ERR_CORRUPT if the ranks' gradient
 *            norms differ, DT_ERR_COMM
 */

typedef struct dt_step {
    double learning_rate, gradient_norm;
    int64_t items;                /* number of tokens or rows */
    double host_overhead_seconds; /* spent neither in the strategy nor in a collective */
    bool skipped;                 /* fp16 overflow: session->step did not advance */
    bool stop;                    /* a rank was asked to stop */
    bool time_over;               /* a rank has reached the recipe's time limit */

    /* only within train.c */
    double margin, right; /* of pairs of answers: sum of margins, and pairs of positive margin */
    double valid_targets; /* targets that count, or their weights, over ranks and micro-steps */
    double loss_sum;      /* sum of this rank; of all ranks once they have agreed */
    double mean_norm;     /* mean of the ranks' gradient norms */
    double scale;         /* loss scale of the gradients; 1 except with fp16 */
} dt_step;

/* report: sends the events of a training rank (events.h).
 *
 * Every rank sends ready, memory, phase, pace and finished; only rank 0 sends metrics and checkpoints,
 * which are the same on all ranks.
 */

/* Steps since the last metrics, including skipped steps. The time excludes evaluation and saving. */
typedef struct dt_interval {
    int64_t steps, items;
    double seconds;
    /* part of `seconds` spent neither in the strategy nor in collectives: loop, data, events */
    double host_overhead_seconds;
    int64_t sent_bytes; /* bytes sent by this rank until the end of the previous interval */
} dt_interval;

/* How fast this rank proceeds, reported every PACE_SECONDS (report.c) if there are several ranks. */
typedef struct dt_pace {
    /* time of the last report, and total time blocked in collectives until then */
    double since_seconds, waited_seconds;
    int64_t step;
} dt_pace;

/* Begin to time the steps (engine/stopwatch.h). */
void dt_report_time(const dt_train_session *session);
void dt_interval_add(dt_interval *interval, const dt_step *step, double seconds);

/* sends the events memory, then ready */
dt_status dt_report_start(dt_train_session *session, dt_error *err);
dt_status dt_report_phase(dt_train_session *session, const char *phase, dt_error *err);
/* Report a step; when its metrics are sent, starts the next interval. */
dt_status dt_report_step(dt_train_session *session, const dt_step *step, dt_interval *interval,
                         dt_error *err);
/* Call after each step. The first call initializes `pace`. */
dt_status dt_report_pace(dt_train_session *session, dt_pace *pace, dt_error *err);
dt_status dt_report_evaluation(dt_train_session *session, dt_error *err);
/* Report results of tasks: as metrics TASK/METRIC, and as an event with the errors. Rank 0 only. */
dt_status dt_report_tasks(dt_train_session *session, const dt_evaluation_results *results,
                          dt_error *err);
/* Report texts of samples, in as many events as they need. Rank 0 only; takes the reference. */
dt_status dt_report_samples(dt_train_session *session, json_t *texts, dt_error *err);
dt_status dt_report_checkpoint(dt_train_session *session, const dt_checkpoint_outcome *outcome,
                               dt_error *err);
dt_status dt_report_checkpoint_failed(dt_train_session *session, int64_t step, const char *message,
                                      dt_error *err);
dt_status dt_report_finished(dt_train_session *session, const char *reason, dt_error *err);
/* Takes no session, because the failure may have happened before one was open. */
dt_status dt_report_failed(dt_events *events, const dt_error *failure, dt_error *err);

/* saving: decides when a checkpoint is due, saves it, and reports the outcome.
 *
 * Due        every checkpoint.every steps; at the end of every checkpoint.every_epoch epochs; after
 *            an evaluation that is not worse than the best before it, if checkpoint.keep_best is above 0;
 *            at the end of the run, stopped or not. One save per step, whatever the reasons
 * Background all saves but the last: the step takes a snapshot, training continues, and a later step
 *            reports the outcome. If a save is due while another is in progress, training waits for the
 *            one in progress, so that no save is dropped. If a node lacks memory for snapshots, training
 *            waits for every save, and the log reports this at the start
 * Failure    a failed save other than the last is an event, and training continues with the previous
 *            checkpoint; the loss of a peer is always fatal
 */

/* Collective; call it once the strategy holds its state. Allocates memory for snapshots if the run
 * will save before its end. */
dt_status dt_saving_open(dt_train_session *session, dt_error *err);
void dt_saving_close(dt_train_session *session);

/* Collective; call it at the end of a step, after its evaluation. `evaluated`: valid_loss is of
 * this step. */
dt_status dt_saving_step(dt_train_session *session, bool evaluated, bool last, dt_error *err);
/* Collective; call it after evaluating the step that the run resumed from. Saves that step again if
 * it is the best. */
dt_status dt_saving_best(dt_train_session *session, dt_error *err);

#endif
