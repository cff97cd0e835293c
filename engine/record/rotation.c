#include "engine/record/rotation.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN_ELEMS 16

/* Bytes per floating point operation: half a hundredth of a step at 5 GB/s of digests for 7e11 operations a second of a
 * processor; of a GPU, at 20 GB/s of copies for 4e14. */
#define HOST_BYTES_PER_FLOP (0.005 * 5e9 / 7e11)
#define CARD_BYTES_PER_FLOP (0.005 * 2e10 / 4e14)
#define LEAST_BYTES         ((int64_t)16 << 10)
#define MOST_BYTES          ((int64_t)1 << 30)

int64_t dt_rotation_budget(double flops, bool host)
{
    double bytes = flops * (host ? HOST_BYTES_PER_FLOP : CARD_BYTES_PER_FLOP);

    if (!(bytes > (double)LEAST_BYTES))
        return LEAST_BYTES;
    return bytes < (double)MOST_BYTES ? (int64_t)bytes : MOST_BYTES;
}

int64_t dt_rotation_round(const dt_rotation *rotation, int64_t step)
{
    return step > 0 ? (step - 1) % rotation->rounds : 0;
}

void dt_rotation_window(int64_t *start, int64_t *end, const dt_rotation *rotation, int64_t round,
                        int64_t elems)
{
    *start = elems * round / rotation->rounds;
    *end = elems * (round + 1) / rotation->rounds;
}

void dt_rotation_release(dt_rotation *rotation)
{
    free(rotation->pieces);
    free(rotation->starts);
    memset(rotation, 0, sizeof(*rotation));
}

/* The round that is being filled. */
typedef struct filling {
    int64_t budget, most;  /* of a round */
    int64_t bytes, pieces; /* in this round */
    int64_t count, rounds; /* pieces and rounds before and with this one */
    dt_rotation *out;      /* NULL tables: only count */
} filling;

static void add_piece(filling *f, const dt_rotation_part *part, int64_t at, int64_t elems)
{
    if (f->rounds == 0 || f->bytes >= f->budget || f->pieces == f->most) {
        if (f->out->starts != NULL)
            f->out->starts[f->rounds] = f->count;
        f->rounds++;
        f->bytes = f->pieces = 0;
    }
    if (f->out->pieces != NULL)
        f->out->pieces[f->count] = (dt_rotation_piece){part->param, part->first + at, elems};
    f->count++;
    f->pieces++;
    f->bytes += elems * part->elem_bytes;
}

/* The elements of the next piece: what is left of the budget, or of a new round's. */
static int64_t next_elems(const filling *f, const dt_rotation_part *part, int64_t left)
{
    bool opens = f->rounds == 0 || f->bytes >= f->budget || f->pieces == f->most;
    int64_t room = (opens ? f->budget : f->budget - f->bytes) / part->elem_bytes;

    room = (room + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
    if (room < ALIGN_ELEMS)
        room = ALIGN_ELEMS;
    return left < room ? left : room;
}

static void deal(filling *f, const dt_rotation_part *parts, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t at = 0, elems; at < parts[i].elems; at += elems) {
            elems = next_elems(f, &parts[i], parts[i].elems - at);
            add_piece(f, &parts[i], at, elems);
        }
}

dt_status dt_rotation_make(dt_rotation *out, const dt_rotation_part *parts, int64_t count,
                           int64_t budget_bytes, int64_t pieces_most, dt_error *err)
{
    filling f = {.budget = budget_bytes, .most = pieces_most, .out = out};

    memset(out, 0, sizeof(*out));
    deal(&f, parts, count);
    out->piece_count = f.count;
    out->rounds = f.rounds > 0 ? f.rounds : 1;
    out->pieces = calloc((size_t)f.count + 1, sizeof(*out->pieces));
    out->starts = calloc((size_t)out->rounds + 1, sizeof(*out->starts));
    if (out->pieces == NULL || out->starts == NULL) {
        dt_rotation_release(out);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the table of the record");
    }
    f = (filling){.budget = budget_bytes, .most = pieces_most, .out = out};
    deal(&f, parts, count);
    out->starts[out->rounds] = f.count;
    for (int64_t r = 0; r < out->rounds; r++)
        if (out->starts[r + 1] - out->starts[r] > out->most)
            out->most = out->starts[r + 1] - out->starts[r];
    return DT_OK;
}
