/* record: writes down what a rank computes in each step, as digests, so that `dtrun verify` can compare a replay with it
 * to the bit. Always on.
 *
 * Text       runs/ID/record/attempt-A-rank-R.txt on the launch machine: a header of one line of JSON, then a line a step:
 *              STEP EPOCH:SAMPLE INPUT LOSSES SENT NORM LOSS VALUE.GRADIENT.MOMENT... VALUE.GRADIENT.MOMENT...
 *            Digests are 8 hex digits, the low half of XXH3-64; NORM and LOSS are the bits of a double; - is unknown
 *              STEP      the step, from 1; of a skipped step (fp16) the one that was tried
 *              EPOCH:SAMPLE   position in the data before the step
 *              INPUT     of all inputs of this rank; LOSSES of the sums of losses that this rank computed
 *              SENT      of the gradients that this rank sends, before they are sent: of each unit the part that belongs
 *                        to the round; 00000000 if none are sent, or on a GPU
 *              VALUE ... of each piece of the round (rotation.h): the gradient after the ranks have summed it, value and
 *                        moments after the update. A frozen piece has a VALUE alone
 *            The header's "rounds" names the pieces of each round. A piece is [NAME, first, elems], elements of what the
 *            rank holds of the parameter
 * Events     sent in pieces: after the first step, then every FLUSH_SECONDS, before each save, and at the end, so that a
 *            checkpoint never is newer than the record. A killed rank loses the steps since, which its next attempt repeats
 * Random     numbers are a function of the seed, the step, the micro-step, the data rank and the layer (engine/philox.h):
 *            the header has the seed; nothing else has a state
 * GPUs       pieces are copied to the host; gradients before they are sent are not digested
 * Threads    the one that trains. Ownership: borrows what the setup has
 */
#ifndef DT_ENGINE_RECORD_RECORD_H
#define DT_ENGINE_RECORD_RECORD_H

#include "base/json.h"
#include "engine/channel/events.h"
#include "engine/record/rotation.h"
#include "engine/strategy/strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_step_record dt_step_record;

typedef struct dt_record_setup {
    dt_strategy_state *state; /* set up; before_send becomes the record's */
    dt_events *events;
    double step_flops; /* of this rank */
    json_t *header;    /* what identifies run, rank and arithmetic; its reference is taken */
} dt_record_setup;

dt_status dt_record_open(dt_step_record **out, const dt_record_setup *setup, dt_error *err);
void dt_record_close(dt_step_record *record); /* accepts NULL */

/* Which pieces are digested when; valid until the record is closed. */
const dt_rotation *dt_record_rotation(const dt_step_record *record);

/* A step, in this order; all but the last accept NULL for no record. */
void dt_record_begin(dt_step_record *record, int64_t step, int64_t epoch, int64_t sample);
void dt_record_batch(dt_step_record *record, const dt_micro_batch *batch); /* before each pass */
void dt_record_losses(dt_step_record *record, double loss_sum);            /* after each pass */
dt_status dt_record_gradients(dt_step_record *record, double norm, dt_error *err); /* reduced */
dt_status dt_record_update(dt_step_record *record, double loss, dt_error *err); /* not if skipped */
/* Adds the line of the step, and sends what is due. Also after a failure: what is unknown stays so. */
dt_status dt_record_end(dt_step_record *record, dt_error *err);

/* Sends everything. */
dt_status dt_record_flush(dt_step_record *record, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
