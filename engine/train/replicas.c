#include "engine/train/train_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/digest.h"
#include "engine/device/device_cuda.h"
#include "engine/ops/cpu/isa.h"

enum { PIECE_ELEMS = 1 << 20 }; /* elements copied from a GPU at a time */
/* hex digits of a digest that are compared: 52 bits, which a double holds exactly */
#define NUMBER_DIGITS 13

/* The first digits of a digest as a double. A sum over ranks keeps it exactly, if all other ranks
 * contribute 0. */
static double number_of(const dt_digest *digest)
{
    char hex[DT_DIGEST_SIZE];

    dt_digest_get(hex, digest);
    hex[NUMBER_DIGITS] = '\0';
    return (double)strtoull(hex, NULL, 16);
}

static dt_status add_unit(dt_digest *digest, dt_device *device, const float *master, int64_t elems,
                          float *piece, dt_error *err)
{
    dt_status st = DT_OK;

    if (device->host_reads) {
        dt_digest_add(digest, master, 4 * (size_t)elems);
        return DT_OK;
    }
    for (int64_t at = 0; at < elems; at += PIECE_ELEMS) {
        int64_t left = elems - at;
        size_t bytes = 4 * (size_t)(left < PIECE_ELEMS ? left : PIECE_ELEMS);

        DT_TRY(device->copy_out(device, piece, master + at, bytes, err));
        dt_digest_add(digest, piece, bytes);
    }
out:
    return st;
}

static dt_status number_of_parameters(double *out, dt_train_session *session, dt_error *err)
{
    dt_strategy_state *state = &session->state;
    dt_device *device = &session->device;
    float *piece = NULL, *master;
    dt_digest *digest = NULL;
    dt_status st = DT_OK;
    int64_t elems;

    DT_TRY(dt_digest_new(&digest, err));
    piece = device->host_reads ? NULL : malloc(sizeof(*piece) * PIECE_ELEMS);
    if (piece == NULL && !device->host_reads)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to compare parameters");
    for (int unit = 0; unit < state->model->unit_count; unit++) {
        state->strategy->copy_of_unit(state, unit, &master, &elems);
        DT_TRY(add_unit(digest, device, master, elems, piece, err));
    }
    *out = number_of(digest);
out:
    free(piece);
    dt_digest_free(digest);
    return st;
}

/* Describe which ranks hold the same: what determines rounding on this rank (the CPU's instruction set and threads, or
 * the GPU model), and its part of the model. */
dt_status dt_replicas_describe(char *out, size_t size, const dt_device *device, const dt_mesh *mesh,
                               dt_error *err)
{
    long long tensor = mesh->axis[DT_AXIS_TENSOR].rank, shard = mesh->axis[DT_AXIS_SHARD].rank;
    const dt_cuda_entry *entry;
    const dt_ops *ops;
    dt_cuda_card card;
    const char *isa;
    dt_status st = DT_OK;

    if (device->host_reads) {
        DT_TRY(dt_cpu_isa_pick(&ops, &isa, err));
        snprintf(out, size, "%s %s %d %lld %lld", device->name, isa, device->threads, tensor,
                 shard);
    } else {
        DT_TRY(dt_cuda_load(&entry, err));
        DT_TRY(entry->card(&card, device->index, err));
        snprintf(out, size, "%s %s %d %lld %lld", device->name, card.name, card.processors, tensor,
                 shard);
    }
out:
    return st;
}

/* A number that is equal on ranks that round alike and hold the same. */
static dt_status number_of_kind(double *out, const dt_device *device, const dt_mesh *mesh,
                                dt_error *err)
{
    dt_digest *digest = NULL;
    char text[sizeof((dt_cuda_card){0}.name) + 64];
    dt_status st = DT_OK;

    DT_TRY(dt_replicas_describe(text, sizeof(text), device, mesh, err));
    DT_TRY(dt_digest_new(&digest, err));
    dt_digest_add(digest, text, strlen(text));
    *out = number_of(digest);
out:
    dt_digest_free(digest);
    return st;
}

int64_t dt_replicas_odd_one(const double *numbers, const double *kinds, int64_t count,
                            int64_t *agreeing)
{
    int64_t odd = -1, fewest = count;

    *agreeing = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t like = 0, same = 0;

        for (int64_t j = 0; j < count; j++) {
            like += kinds[j] == kinds[i];
            same += kinds[j] == kinds[i] && numbers[j] == numbers[i];
        }
        if (same == like || same >= fewest)
            continue;
        fewest = same;
        odd = i;
        *agreeing = like - same;
    }
    return odd;
}

static dt_status judge(const dt_train_session *session, const double *numbers, int64_t count,
                       dt_error *err)
{
    int64_t agreeing, odd = dt_replicas_odd_one(numbers, numbers + count, count, &agreeing);

    if (odd < 0)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_CORRUPT,
                   "step %lld: the parameters of rank %lld differ from those of %lld %s: a bit was "
                   "flipped, or the ranks have drifted apart (resume from the last checkpoint)",
                   (long long)session->step, (long long)odd, (long long)agreeing,
                   agreeing == 1 ? "rank that should hold the same"
                                 : "ranks that should hold the same");
}

bool dt_replicas_exist(const dt_train_session *session)
{
    return session->state.strategy->copy_of_unit != NULL &&
           session->mesh.axis[DT_AXIS_REPLICA].size > 1;
}

dt_status dt_replicas_compare(dt_train_session *session, dt_error *err)
{
    int64_t count = session->mesh.world.size, mine = session->mesh.world.rank;
    /* (2 count): digest of the parameters of each rank, then the number of its kind */
    double *numbers = NULL;
    dt_status st = DT_OK;

    if (!dt_replicas_exist(session) || session->compared_step == session->step)
        return DT_OK;
    numbers = calloc(2 * (size_t)count, sizeof(*numbers));
    if (numbers == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to compare parameters");
    DT_TRY(number_of_parameters(&numbers[mine], session, err));
    DT_TRY(number_of_kind(&numbers[count + mine], &session->device, &session->mesh, err));
    DT_TRY(session->comm.all_reduce_f64(&session->comm, numbers, 2 * count, err));
    DT_TRY(judge(session, numbers, count, err));
    session->compared_step = session->step;
out:
    free(numbers);
    return st;
}
