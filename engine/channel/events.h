/* events: the messages between a rank and the agent that started it, and the request to end early
 * (SIGTERM).
 *
 * The channel is an inherited socket pair, whose file descriptor is in DTRUN_CHANNEL. JSON lines in both
 * directions, one object per line, at most DT_EVENT_MAX_BYTES. Without DTRUN_CHANNEL (the engine was
 * started by hand) events go to stdout, and a rendezvous of one rank answers itself.
 *
 * rank → agent (each becomes a numbered line of the journal, except rendezvous)
 *   {"event":"ready","pid":1,"device":"cpu","threads":1,"step":0,"steps":2000,
 *    "matmul_flops":1.1e12,"least_step_seconds":0.5}   step, steps: first and last step, also if the
 *    recipe gives epochs
 *   {"event":"memory","parameters_bytes":..,"gradients_bytes":..,"optimizer_bytes":..,
 *    "activations_bytes":..,"buffers_bytes":..,"free_bytes":..}
 *   {"event":"rendezvous","name":"comm/main","value":"<hex>"}
 *   {"event":"metrics","step":12,"values":{"loss":..,"learning_rate":..,"gradient_norm":..,
 *    "tokens_per_second":..,"step_seconds":..,"outside_seconds":..,"flops_per_second":..,
 *    "matmul_flops_per_second":..,"least_step_seconds":..,"held_bytes":..,"sent_bytes":..,
 *    "loss_scale":..,"skipped_steps":..}}
 *    rank 0 only; every log.every steps, and the first and the last. flops_per_second is by the
 *    formula of model.h, over all ranks; matmul_flops_per_second is the reference for it:
 *    the rate of matrix products that the ranks measured at their start; at this rate the products of a
 *    step take least_step_seconds. For rank 0 alone: outside_seconds is the time of a step spent neither
 *    in the strategy nor in collectives; held_bytes is the size of parameters, gradients and moments;
 *    sent_bytes is per step. Only with fp16: the loss scale, and the number of skipped steps of the run,
 *    which have no step number
 *   {"event":"metrics","step":12,"values":{"gpu_busy_percent_rank_3":..,"gpu_used_bytes_rank_3":..,
 *    "gpu_temperature_c_rank_3":..,"gpu_power_watts_rank_3":..}}   from every rank with a GPU, about
 *    its GPU, from NVML
 *   {"event":"metrics","step":50,"values":{"valid_loss":..,"valid_bleu":..}}
 *   {"event":"pace","step":12,"step_seconds":..,"waited_seconds":..}   averages per step, from every rank
 *    if there are several, every 5 s: the rank that waited least is the one the others wait for
 *   {"event":"record","offset":0,"text":".."}   lines of the record of the rank (engine/record/record.h), from every rank;
 *    offset: bytes of the attempt's record before
 *   {"event":"phase","phase":"train"|"evaluate"|"save"|"generate"|"score"}   a hint for the hang detector
 *   {"event":"checkpoint","step":100,"directory":"step-00000100","bytes":..,"digest":"..",
 *    "valid_loss":..|null,"score":..|null,"seconds":..}   score: lower is better; directory: of a command an
 *    absolute path; digest is "", and "last" is true if the program has ended well
 *   {"event":"checkpoint_failed","step":100,"message":".."}  training continues; from rank 0, and from each rank whose part failed
 *   {"event":"evaluation","step":100,"tasks":{"arc":{"kind":"choice","rows":200,"cut":0,"metrics":{"acc":{"value":..,
 *    "stderr":..|null},..}},..}}   results of evaluation tasks, from rank 0; as metrics too: "arc/acc"
 *   {"event":"samples","step":100,"samples":[{"index":0,"prompt":"..","text":"..","tokens":64,"ended":"tokens"},..]}
 *    texts of 'evaluate.samples', from rank 0; of one step in as many events as they need
 *   {"event":"confusion","step":100,"counts":[[31,2],[0,17]]}   of a classifier with at most 100 classes, from rank 0, with
 *    each evaluation: rows by class and, within, by predicted class
 *   {"event":"part","part":3,"offset":0,"last":true,"text":"..","lines":16,"tokens":400,"seconds":..,
 *    "log_likelihood":..}   of a task (engine/task/): output of a part of its lines, starting at byte
 *    `offset`; "hex" instead of "text" if it is not UTF-8. Only the last piece has the fields after
 *    "text", which are totals of the part; log_likelihood only when scoring
 *   {"event":"failed","status":"io","message":".."}          then exit 1
 *   {"event":"finished","step":2000,"steps":2000,"reason":"steps"|"stopped"|"time_limit",
 *    "loss":..,"valid_loss":..,"peak_bytes":..,"signalled":..,"warning":".."}   peak_bytes: host memory of this process;
 *    signalled: whether this rank itself was told to stop; the other ranks stop with it;
 *    warning: only if there is something to say about a good end
 *   {"event":"where",..}   the answer to `where` (activity.h); for the agent, not in the journal
 * agent → rank
 *   {"command":"rendezvous","name":"comm/main","values":["<hex>",..]}   by rank
 *   {"command":"where"}   request for the current activity; the reading thread answers it, whatever the
 *    other threads do
 * A stop is SIGTERM: the ranks agree on the step after which they stop, save, finish, exit 0.
 * End of file from the agent: the rank exits 1, because no agent supervises it any more.
 *
 * Threads  dt_events_send from any thread
 * Errors   DT_ERR_PEER if the channel is lost; DT_ERR_TIMEOUT of a rendezvous, also if the
 *          rank is asked to stop while it waits
 */
#ifndef DT_ENGINE_CHANNEL_EVENTS_H
#define DT_ENGINE_CHANNEL_EVENTS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

/* stop: tells whether this rank has been asked to end early.
 *
 * SIGTERM stays blocked from before the first thread is started (engine.c): it is never delivered,
 * only polled, at the ends of steps, between passes of an evaluation and during startup.
 * Ranks that must act on it together first sum it up over the ranks.
 */

void dt_stop_block(void); /* blocks the signal; call it before starting threads */
bool dt_stop_asked(void);

#define DT_EVENT_MAX_BYTES (1 << 20)

typedef struct dt_events dt_events;

/* Starts the thread that reads commands. */
dt_status dt_events_open(dt_events **out, int64_t rank, int64_t world_size, dt_error *err);
void dt_events_close(dt_events *events);

/* Send an event. Takes `object` (its reference), whose "event" key must be set. */
dt_status dt_events_send(dt_events *events, json_t *object, dt_error *err);

/* Exchange a value with all ranks. All call it with the same name; it returns when all values have
 * come. *values: new reference to an array of world_size hex strings. */
dt_status dt_events_rendezvous(dt_events *events, const char *name, const void *value,
                               size_t value_bytes, double timeout_seconds, json_t **values,
                               dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
