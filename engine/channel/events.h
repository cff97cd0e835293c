/* events: the channel between a rank and the agent that started it.
 *
 * One socket pair, inherited; its number is in DTRUN_CHANNEL. JSON lines both ways, one object a
 * line, at most DT_EVENT_MAX_BYTES. Without DTRUN_CHANNEL (the engine started by hand) events go
 * to stdout and a rendezvous of one rank answers itself.
 *
 * rank → agent (each becomes a numbered line of the journal, but for rendezvous)
 *   {"event":"ready","pid":1,"device":"cpu","threads":1,"step":0,"steps":2000,
 *    "matmul_flops":1.1e12,"least_step_seconds":0.5}   from which step to which: the recipe may say
 *    epochs
 *   {"event":"memory","parameters_bytes":..,"gradients_bytes":..,"optimizer_bytes":..,
 *    "activations_bytes":..,"buffers_bytes":..,"free_bytes":..}
 *   {"event":"rendezvous","name":"comm/main","value":"<hex>"}
 *   {"event":"metrics","step":12,"values":{"loss":..,"learning_rate":..,"gradient_norm":..,
 *    "tokens_per_second":..,"step_seconds":..,"outside_seconds":..,"flops_per_second":..,
 *    "matmul_flops_per_second":..,"least_step_seconds":..,"held_bytes":..,"sent_bytes":..,
 *    "loss_scale":..,"skipped_steps":..}}
 *    rank 0 only; every log.every steps, and the first and the last. flops_per_second is by the
 *    formula of model.h, over all ranks; matmul_flops_per_second is what it can be held against:
 *    the rate of matrix products that the ranks measured at their start, at which the products of a
 *    step take least_step_seconds. Rank 0 alone:
 *    outside_seconds of a step went neither into the strategy nor into collectives; held_bytes of
 *    parameters, gradients and moments; sent_bytes in a step. fp16 alone: the scale, and how many
 *    steps of the run were skipped, which have no number
 *   {"event":"metrics","step":12,"values":{"gpu_busy_percent_rank_3":..,"gpu_used_bytes_rank_3":..,
 *    "gpu_temperature_c_rank_3":..,"gpu_power_watts_rank_3":..}}   by every rank on a GPU, of its
 *    card, as NVML tells
 *   {"event":"metrics","step":50,"values":{"valid_loss":..,"valid_bleu":..}}
 *   {"event":"pace","step":12,"step_seconds":..,"waited_seconds":..}   of a step, by every rank of
 *    several, every 5 s: the one that waited least for the others is the one they wait for
 *   {"event":"phase","phase":"train"|"evaluate"|"save"|"generate"|"score"}   the hang detector's hint
 *   {"event":"checkpoint","step":100,"directory":"step-00000100","bytes":..,"digest":"..",
 *    "valid_loss":..|null,"score":..|null,"seconds":..}   score: the lower, the better
 *   {"event":"checkpoint_failed","step":100,"message":".."}  training continues
 *   {"event":"part","part":3,"offset":0,"last":true,"text":"..","lines":16,"tokens":400,"seconds":..,
 *    "log_likelihood":..}   of a task (engine/task/): what came of a part of its lines, from that byte
 *    on; "hex" instead of "text" where it is none. The last piece alone has what follows "text": of all of
 *    the part; log_likelihood where it is scored
 *   {"event":"failed","status":"io","message":".."}          then exit 1
 *   {"event":"finished","step":2000,"steps":2000,"reason":"steps"|"stopped"|"time_limit",
 *    "loss":..,"valid_loss":..,"peak_bytes":..}   the last: of the host's memory, of this process
 *   {"event":"where",..}   the answer to `where` (activity.h); the agent's, not of the journal
 * agent → rank
 *   {"command":"rendezvous","name":"comm/main","values":["<hex>",..]}   by rank
 *   {"command":"where"}   what it does; answered by the thread that reads, whatever the others do
 * A stop is SIGTERM: the ranks agree on the step after which they stop, save, finish, exit 0.
 * End of file from the agent: the rank exits 1, since nobody supervises it any more.
 *
 * Threads  dt_events_send from any thread
 * Errors   DT_ERR_PEER when the channel is gone; DT_ERR_TIMEOUT of a rendezvous, also where the
 *          rank is asked to stop (stop.h) while it waits
 */
#ifndef DT_ENGINE_CHANNEL_EVENTS_H
#define DT_ENGINE_CHANNEL_EVENTS_H

#include "base/error.h"
#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_EVENT_MAX_BYTES (1 << 20)

typedef struct dt_events dt_events;

/* Starts the thread that reads commands. */
dt_status dt_events_open(dt_events **out, int64_t rank, int64_t world_size, dt_error *err);
void dt_events_close(dt_events *events);

/* Takes `object` (its reference), whose "event" key is set. */
dt_status dt_events_send(dt_events *events, json_t *object, dt_error *err);

/* All ranks call it with the same name; returns when everyone's value is there.
 * *values: new reference to an array of world_size hex strings. */
dt_status dt_events_rendezvous(dt_events *events, const char *name, const void *value,
                               size_t value_bytes, double timeout_seconds, json_t **values,
                               dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
