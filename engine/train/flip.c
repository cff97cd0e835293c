/* flip: inverts one bit in a chosen step, for tests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/record/record.h"
#include "engine/train/train_int.h"

typedef struct dt_flip {
    char kind[16];
    int64_t step;
    uint64_t drawn; /* state of the generator */
    bool anywhere, done;
    dt_before_send record; /* the record's, which looks after the flip */
    dt_train_session *session;
} dt_flip;

static uint64_t draw(dt_flip *flip, uint64_t below)
{
    uint64_t x = (flip->drawn += 0x9e3779b97f4a7c15u);

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % below;
}

static bool is_now(const dt_flip *flip, const char *kind, int64_t step)
{
    return flip != NULL && !flip->done && flip->step == step && strcmp(flip->kind, kind) == 0;
}

/* Inverts a bit of an element of `width` bytes in device memory. */
static dt_status invert(dt_flip *flip, void *element, size_t width, const char *what, int64_t index,
                        dt_error *err)
{
    dt_device *device = &flip->session->device;
    int bit = (int)draw(flip, 8 * width);
    uint32_t bits = 0;
    dt_status st = DT_OK;

    DT_TRY(device->copy_out(device, &bits, element, width, err));
    bits ^= 1u << bit;
    DT_TRY(device->copy_in(device, element, &bits, width, err));
    flip->done = true;
    dt_log_error("flipped: %s of rank %lld in step %lld: bit %d of element %lld of %s", flip->kind,
                 (long long)flip->session->mesh.world.rank, (long long)flip->step, bit,
                 (long long)index, what);
out:
    return st;
}

/* --- places */

/* Draws an element of what the rank holds: of the round's pieces, or of all. */
static bool draw_element(dt_flip *flip, dt_rotation_piece *piece, int64_t *index)
{
    const dt_rotation *rotation = dt_record_rotation(flip->session->record);
    int64_t round = dt_rotation_round(rotation, flip->step);
    int64_t first = flip->anywhere ? 0 : rotation->starts[round], elems = 0, at;
    int64_t end = flip->anywhere ? rotation->piece_count : rotation->starts[round + 1];

    for (int64_t i = first; i < end; i++)
        elems += rotation->pieces[i].elems;
    if (elems == 0)
        return false;
    at = (int64_t)draw(flip, (uint64_t)elems);
    while (at >= rotation->pieces[first].elems)
        at -= rotation->pieces[first++].elems;
    *piece = rotation->pieces[first];
    *index = piece->first + at;
    return true;
}

static dt_status flip_held(dt_flip *flip, dt_error *err)
{
    const dt_strategy_state *state = &flip->session->state;
    dt_rotation_piece piece;
    dt_held_part held;
    int64_t index;
    unsigned char *data = NULL;
    size_t width = sizeof(float);

    for (int tries = 0; tries < 1000 && data == NULL; tries++) {
        if (!draw_element(flip, &piece, &index) ||
            !state->strategy->held_part(state, piece.param, &held))
            continue;
        if (strcmp(flip->kind, "weight") == 0)
            data = (unsigned char *)held.value;
        else if (strcmp(flip->kind, "gradient") == 0)
            data = (unsigned char *)held.grad;
        else {
            data = held.state[draw(flip, DT_OPTIMIZER_STATES)];
            width = dt_dtype_bytes(held.state_dtype);
        }
    }
    if (data == NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "DTRUN_TEST_FLIP: nothing to flip");
    return invert(flip, data + (size_t)(index - held.first) * width, width,
                  state->model->params[piece.param].name, index, err);
}

dt_status dt_flip_gradient(dt_train_session *session, dt_error *err)
{
    return is_now(session->flip, "gradient", session->step + 1) ? flip_held(session->flip, err)
                                                                : DT_OK;
}

dt_status dt_flip_state(dt_train_session *session, dt_error *err)
{
    return is_now(session->flip, "weight", session->step) ||
                   is_now(session->flip, "moment", session->step)
               ? flip_held(session->flip, err)
               : DT_OK;
}

/* An input is in host memory, and covered as a whole. Flips a low bit, since a token must be in the vocabulary. */
void dt_flip_input(dt_train_session *session)
{
    dt_flip *flip = session->flip;
    dt_tensor *input = &session->batch.inputs[0];
    size_t elems = (size_t)dt_tensor_elems(input), at;
    unsigned char *bytes = input->data;

    if (!is_now(flip, "input", session->step + 1))
        return;
    at = draw(flip, elems);
    bytes[at * dt_dtype_bytes(input->dtype)] ^= 1;
    flip->done = true;
    dt_log_error("flipped: input of rank %lld in step %lld: bit 0 of element %zu",
                 (long long)session->mesh.world.rank, (long long)flip->step, at);
}

static void flip_sent(void *self, int unit, float *grads, int64_t elems)
{
    dt_flip *flip = self;
    const dt_rotation *rotation = dt_record_rotation(flip->session->record);
    int64_t start = 0, end = elems;

    if (!flip->anywhere)
        dt_rotation_window(&start, &end, rotation, dt_rotation_round(rotation, flip->step), elems);
    if (is_now(flip, "sent", flip->session->step + 1) && end > start &&
        (unit == 0 || draw(flip, 2) == 0)) {
        int64_t at = start + (int64_t)draw(flip, (uint64_t)(end - start));

        (void)invert(flip, grads + at, sizeof(float), "the gradients of a unit", at, NULL);
    }
    flip->record.see(flip->record.self, unit, grads, elems);
}

/* --- opening */

dt_status dt_flip_open(dt_train_session *session, dt_error *err)
{
    const char *text = getenv("DTRUN_TEST_FLIP");
    long long rank, step, seed;
    char kind[16], word[16] = "";
    dt_flip *flip;

    if (text == NULL || text[0] == '\0')
        return DT_OK;
    if (sscanf(text, "%15[a-z] %lld@%lld %lld %15[a-z]", kind, &rank, &step, &seed, word) < 4)
        return DT_FAIL(err, DT_ERR_USAGE, "DTRUN_TEST_FLIP: '%s' is not KIND RANK@STEP SEED", text);
    if (rank != session->mesh.world.rank)
        return DT_OK;
    flip = calloc(1, sizeof(*flip));
    if (flip == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a flip");
    *flip = (dt_flip){.step = step,
                      .drawn = (uint64_t)seed,
                      .anywhere = strcmp(word, "anywhere") == 0,
                      .record = session->state.before_send,
                      .session = session};
    memcpy(flip->kind, kind, sizeof(kind));
    session->state.before_send = (dt_before_send){.see = flip_sent, .self = flip};
    session->flip = flip;
    return DT_OK;
}

void dt_flip_close(dt_train_session *session)
{
    if (session->flip != NULL)
        session->state.before_send = session->flip->record;
    free(session->flip);
    session->flip = NULL;
}
