#include "engine/record/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "engine/checkpoint/digest.h"
#include "engine/device/device.h"

#define FLUSH_SECONDS 10.0
#define EVENT_BYTES   ((size_t)256 << 10) /* of text in an event */
#define PIECES_MOST   16
#define CARD_PIECES   2 /* each takes copies that wait for the GPU */

enum { VALUE, GRADIENT, STATES, KINDS = STATES + DT_OPTIMIZER_STATES };

typedef struct known {
    bool is;
    uint32_t digest;
} known;

/* What the line of the current step is made of. */
typedef struct line {
    bool open;
    int64_t step, epoch, sample, round;
    uint64_t input, losses, sent; /* chained */
    bool has_norm, has_loss;
    double norm, loss;
} line;

struct dt_step_record {
    dt_strategy_state *state;
    dt_events *events;
    dt_rotation rotation;
    line now;
    known (*digests)[KINDS]; /* [rotation.most]: of the pieces of the round */
    void *copy;              /* of a piece of a GPU; NULL: the host reads the device */
    dt_strbuf text;          /* not sent yet */
    int64_t offset;          /* bytes sent */
    double sent_seconds;
};

/* --- opening */

static int64_t elem_bytes(const dt_held_part *held)
{
    int64_t bytes = 8; /* value and gradient */

    if (held->value == NULL)
        return (int64_t)dt_dtype_bytes(held->frozen.dtype);
    for (int s = 0; s < DT_OPTIMIZER_STATES; s++)
        bytes += held->state[s] != NULL ? (int64_t)dt_dtype_bytes(held->state_dtype) : 0;
    return bytes;
}

static dt_status make_rotation(dt_step_record *record, double step_flops, dt_error *err)
{
    const dt_strategy_state *state = record->state;
    bool host = state->model->device->host_reads;
    size_t params = (size_t)state->model->param_count;
    dt_rotation_part *parts = calloc(params + 1, sizeof(*parts));
    int64_t count = 0;
    dt_status st = DT_OK;
    dt_held_part held;

    if (parts == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the table of the record");
    for (int p = 0; p < (int)params; p++)
        if (state->strategy->held_part(state, p, &held))
            parts[count++] = (dt_rotation_part){p, held.first, held.elems, elem_bytes(&held)};
    DT_TRY(dt_rotation_make(&record->rotation, parts, count, dt_rotation_budget(step_flops, host),
                            host ? PIECES_MOST : CARD_PIECES, err));
out:
    free(parts);
    return st;
}

static dt_status take_memory(dt_step_record *record, dt_error *err)
{
    int64_t most = 0;

    record->digests = calloc((size_t)record->rotation.most + 1, sizeof(*record->digests));
    for (int64_t i = 0; i < record->rotation.piece_count; i++)
        if (record->rotation.pieces[i].elems > most)
            most = record->rotation.pieces[i].elems;
    if (!record->state->model->device->host_reads)
        record->copy = malloc(4 * (size_t)most + 4);
    if (record->digests == NULL || (!record->state->model->device->host_reads && !record->copy))
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the record");
    return DT_OK;
}

static json_t *rounds_to_json(const dt_step_record *record)
{
    const dt_rotation *rotation = &record->rotation;
    json_t *rounds = json_array();

    for (int64_t r = 0; r < rotation->rounds; r++) {
        json_t *round = json_array();

        for (int64_t i = rotation->starts[r]; i < rotation->starts[r + 1]; i++) {
            const dt_rotation_piece *piece = &rotation->pieces[i];

            json_array_append_new(
                round, json_pack("[s, I, I]", record->state->model->params[piece->param].name,
                                 (json_int_t)piece->first, (json_int_t)piece->elems));
        }
        json_array_append_new(rounds, round);
    }
    return rounds;
}

static void see_before_send(void *self, int unit, float *grads, int64_t elems);

dt_status dt_record_open(dt_step_record **out, const dt_record_setup *setup, dt_error *err)
{
    dt_step_record *record = calloc(1, sizeof(*record));
    dt_status st = DT_OK;

    *out = NULL;
    if (record == NULL) {
        json_decref(setup->header);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the record");
    }
    record->state = setup->state;
    record->events = setup->events;
    dt_strbuf_init(&record->text);
    DT_TRY(make_rotation(record, setup->step_flops, err));
    DT_TRY(take_memory(record, err));
    json_object_set_new(setup->header, "rounds", rounds_to_json(record));
    dt_json_write(&record->text, setup->header);
    dt_strbuf_add_char(&record->text, '\n');
    setup->state->before_send = (dt_before_send){.see = see_before_send, .self = record};
    *out = record;
    record = NULL;
out:
    json_decref(setup->header);
    dt_record_close(record);
    return st;
}

void dt_record_close(dt_step_record *record)
{
    if (record == NULL)
        return;
    record->state->before_send = (dt_before_send){0};
    dt_rotation_release(&record->rotation);
    dt_strbuf_release(&record->text);
    free(record->digests);
    free(record->copy);
    free(record);
}

const dt_rotation *dt_record_rotation(const dt_step_record *record)
{
    return &record->rotation;
}

/* --- digests */

static void chain(uint64_t *io, const void *bytes, size_t length)
{
    const uint64_t both[] = {*io, dt_digest_number(bytes, length)};

    *io = dt_digest_number(both, sizeof(both));
}

static dt_status digest_piece(dt_step_record *record, known *out, const void *data, size_t bytes,
                              dt_error *err)
{
    dt_device *device = record->state->model->device;
    dt_status st = DT_OK;

    *out = (known){0};
    if (data == NULL)
        return DT_OK;
    if (record->copy != NULL) {
        DT_TRY(device->copy_out(device, record->copy, data, bytes, err));
        data = record->copy;
    }
    *out = (known){true, (uint32_t)dt_digest_number(data, bytes)};
out:
    return st;
}

/* Where a piece lies within what the rank holds. */
static int64_t find_piece(const dt_step_record *record, dt_held_part *held,
                          const dt_rotation_piece *piece)
{
    bool holds = record->state->strategy->held_part(record->state, piece->param, held);

    DT_ASSERT(holds);
    return piece->first - held->first;
}

static dt_status digest_values(dt_step_record *record, const dt_held_part *held, int64_t at,
                               int64_t elems, known *out, dt_error *err)
{
    size_t bytes = 4 * (size_t)elems, width = dt_dtype_bytes(held->state_dtype);
    dt_status st = DT_OK;

    if (held->value == NULL) {
        width = dt_dtype_bytes(held->frozen.dtype);

        return digest_piece(record, &out[VALUE],
                            (const unsigned char *)held->frozen.data + width * (size_t)at,
                            width * (size_t)elems, err);
    }
    DT_TRY(digest_piece(record, &out[VALUE], held->value + at, bytes, err));
    for (int s = 0; s < DT_OPTIMIZER_STATES; s++)
        if (held->state[s] != NULL)
            DT_TRY(digest_piece(record, &out[STATES + s],
                                (const unsigned char *)held->state[s] + width * (size_t)at,
                                width * (size_t)elems, err));
out:
    return st;
}

/* Digests the pieces of the round: gradients, or values and moments. */
static dt_status digest_round(dt_step_record *record, bool gradients, dt_error *err)
{
    const dt_rotation *rotation = &record->rotation;
    int64_t first = rotation->starts[record->now.round];
    dt_status st = DT_OK;
    dt_held_part held;

    for (int64_t i = first; i < rotation->starts[record->now.round + 1]; i++) {
        const dt_rotation_piece *piece = &rotation->pieces[i];
        int64_t at = find_piece(record, &held, piece);
        known *out = record->digests[i - first];

        if (!gradients)
            DT_TRY(digest_values(record, &held, at, piece->elems, out, err));
        else if (held.grad != NULL)
            DT_TRY(digest_piece(record, &out[GRADIENT], held.grad + at, 4 * (size_t)piece->elems,
                                err));
    }
out:
    return st;
}

/* Digests the part of each unit that belongs to the round. */
static void see_before_send(void *self, int unit, float *grads, int64_t elems)
{
    dt_step_record *record = self;
    int64_t start, end;

    (void)unit;
    dt_rotation_window(&start, &end, &record->rotation, record->now.round, elems);
    if (record->now.open && end > start)
        chain(&record->now.sent, grads + start, 4 * (size_t)(end - start));
}

/* --- a step */

void dt_record_begin(dt_step_record *record, int64_t step, int64_t epoch, int64_t sample)
{
    if (record == NULL)
        return;
    record->now = (line){.open = true,
                         .step = step,
                         .epoch = epoch,
                         .sample = sample,
                         .round = dt_rotation_round(&record->rotation, step)};
    memset(record->digests, 0, ((size_t)record->rotation.most + 1) * sizeof(*record->digests));
}

static void chain_inputs(dt_step_record *record, const dt_micro_batch *batch)
{
    for (int i = 0; i < DT_INPUTS_MAX; i++)
        if (batch->inputs[i].data != NULL)
            chain(&record->now.input, batch->inputs[i].data, dt_tensor_bytes(&batch->inputs[i]));
}

void dt_record_batch(dt_step_record *record, const dt_micro_batch *batch)
{
    if (record == NULL)
        return;
    if (batch->parts == NULL)
        chain_inputs(record, batch);
    else /* a replica each; the record is of the first, the others are in the losses */
        chain_inputs(record, &batch->parts[0]);
}

void dt_record_losses(dt_step_record *record, double loss_sum)
{
    if (record != NULL)
        chain(&record->now.losses, &loss_sum, sizeof(loss_sum));
}

dt_status dt_record_gradients(dt_step_record *record, double norm, dt_error *err)
{
    if (record == NULL)
        return DT_OK;
    record->now.has_norm = true;
    record->now.norm = norm;
    return digest_round(record, true, err);
}

dt_status dt_record_update(dt_step_record *record, double loss, dt_error *err)
{
    if (record == NULL)
        return DT_OK;
    record->now.has_loss = true;
    record->now.loss = loss;
    return digest_round(record, false, err);
}

/* --- text */

static void add_hex(dt_strbuf *text, uint64_t value, int digits)
{
    char hex[17];

    for (int i = digits - 1; i >= 0; i--, value >>= 4)
        hex[i] = "0123456789abcdef"[value & 15];
    dt_strbuf_add(text, hex, (size_t)digits);
}

static void add_double(dt_strbuf *text, bool is, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    dt_strbuf_add_char(text, ' ');
    if (is)
        add_hex(text, bits, 16);
    else
        dt_strbuf_add_char(text, '-');
}

static void add_chained(dt_strbuf *text, uint64_t value)
{
    dt_strbuf_add_char(text, ' ');
    add_hex(text, value & UINT32_MAX, 8);
}

static void add_piece(dt_strbuf *text, const known *digests)
{
    int last = KINDS - 1;

    while (last > VALUE && !digests[last].is)
        last--;
    for (int kind = VALUE; kind <= last; kind++) {
        dt_strbuf_add_char(text, kind == VALUE ? ' ' : '.');
        if (digests[kind].is)
            add_hex(text, digests[kind].digest, 8);
        else
            dt_strbuf_add_char(text, '-');
    }
}

static void add_line(dt_step_record *record)
{
    const line *now = &record->now;
    const dt_rotation *rotation = &record->rotation;
    int64_t pieces = rotation->starts[now->round + 1] - rotation->starts[now->round];
    dt_strbuf *text = &record->text;

    dt_strbuf_add_fmt(text, "%lld %lld:%lld", (long long)now->step, (long long)now->epoch,
                      (long long)now->sample);
    add_chained(text, now->input);
    add_chained(text, now->losses);
    add_chained(text, now->sent);
    add_double(text, now->has_norm, now->norm);
    add_double(text, now->has_loss, now->loss);
    for (int64_t i = 0; i < pieces; i++)
        add_piece(text, record->digests[i]);
    dt_strbuf_add_char(text, '\n');
}

dt_status dt_record_end(dt_step_record *record, dt_error *err)
{
    if (record == NULL || !record->now.open)
        return DT_OK;
    add_line(record);
    record->now.open = false;
    if (record->sent_seconds > 0 && record->text.length < EVENT_BYTES / 2 &&
        dt_clock_monotonic_seconds() - record->sent_seconds < FLUSH_SECONDS)
        return DT_OK;
    return dt_record_flush(record, err);
}

static dt_status send(dt_step_record *record, const char *text, size_t length, dt_error *err)
{
    return dt_events_send(record->events,
                          json_pack("{s:s, s:I, s:s%}", "event", "record", "offset",
                                    (json_int_t)record->offset, "text", text, length),
                          err);
}

dt_status dt_record_flush(dt_step_record *record, dt_error *err)
{
    dt_status st = DT_OK;

    if (record == NULL)
        return DT_OK;
    for (size_t at = 0, length; at < record->text.length; at += length) {
        length = record->text.length - at < EVENT_BYTES ? record->text.length - at : EVENT_BYTES;
        DT_TRY(send(record, record->text.data + at, length, err));
        record->offset += (int64_t)length;
    }
    dt_strbuf_reset(&record->text);
    record->sent_seconds = dt_clock_monotonic_seconds();
out:
    return st;
}
