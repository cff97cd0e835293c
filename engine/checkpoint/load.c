/* load: loads any layout of parameters from any other: intersects the wanted slices with the stored
 * pieces. */
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/checkpoint_int.h"

#define WINDOW_ELEMS ((int64_t)1 << 18) /* size of the read buffer: 1 MiB */

/* A read buffer. Rows of a box can be short, so nearby rows are read together. */
typedef struct window {
    const dt_checkpoint_part *part;
    int64_t start_bytes, elems; /* start of the piece in its file, and its length */
    float *data;                /* the read buffer; NULL: nothing read yet */
    int64_t first, count;       /* elements of the piece that are in the buffer */
} window;

static dt_status fill_window(window *buffer, int64_t first, dt_error *err)
{
    int64_t left = buffer->elems - first;
    dt_status st = DT_OK;

    if (buffer->data == NULL)
        buffer->data = malloc((size_t)WINDOW_ELEMS * sizeof(*buffer->data));
    if (buffer->data == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "'%s': no memory to read it", buffer->part->path);
    buffer->first = first;
    buffer->count = left < WINDOW_ELEMS ? left : WINDOW_ELEMS;
    DT_TRY(dt_checkpoint_part_read(buffer->data, buffer->part, buffer->start_bytes, first,
                                   buffer->count, err));
out:
    return st;
}

static dt_status read_row(float *out, window *buffer, const dt_overlap *run, dt_error *err)
{
    int64_t first = run->at_b;
    dt_status st = DT_OK;

    if (run->elems > WINDOW_ELEMS / 4)
        return dt_checkpoint_part_read(out, buffer->part, buffer->start_bytes, first, run->elems,
                                       err);
    if (first < buffer->first || first + run->elems > buffer->first + buffer->count)
        DT_TRY(fill_window(buffer, first, err));
    memcpy(out, buffer->data + (first - buffer->first), (size_t)run->elems * sizeof(*out));
out:
    return st;
}

/* Read the intersection of a piece and a wanted slice: a single run, unless boxes are cut across
 * rows. */
static dt_status read_overlap(float *out, dt_checkpoint *checkpoint,
                              const dt_checkpoint_piece *piece, const dt_slice *wanted,
                              dt_error *err)
{
    dt_overlap run = dt_overlap_of(wanted, &piece->slice);
    window rows = {.elems = piece->slice.elems};
    dt_checkpoint_part *part;
    dt_status st = DT_OK;

    if (!dt_overlap_next(&run))
        return DT_OK;
    DT_TRY(dt_checkpoint_use_part(&part, checkpoint, piece->file, err));
    DT_TRY(dt_checkpoint_part_find(&rows.start_bytes, part, piece, err));
    DT_TRY(
        dt_checkpoint_part_read(out + run.at_a, part, rows.start_bytes, run.at_b, run.elems, err));
    rows.part = part;
    while (dt_overlap_next(&run))
        DT_TRY(read_row(out + run.at_a, &rows, &run, err));
out:
    free(rows.data);
    return st;
}

/* Read a slice. Elements past the stored ones are padding, which is zero. */
static dt_status read_slice(float *out, dt_checkpoint *checkpoint,
                            const dt_checkpoint_tensor *tensor, int kind, const dt_slice *wanted,
                            dt_error *err)
{
    dt_status st = DT_OK;
    const dt_checkpoint_pieces *pieces = &tensor->pieces[kind];
    dt_slice stored = dt_checkpoint_shape_clip(&tensor->shape, wanted);

    if (pieces->count == 0)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "'%s' has no optimizer state for '%s'; resume from another checkpoint",
                 checkpoint->path, tensor->name);
    for (int64_t i = 0; i < pieces->count && stored.elems > 0; i++)
        DT_TRY(read_overlap(out, checkpoint, &pieces->items[i], &stored, err));
    memset(out + stored.elems, 0, (size_t)(wanted->elems - stored.elems) * sizeof(*out));
out:
    return st;
}

/* Append a shape, for example "50257 x 768". */
static void add_shape(dt_strbuf *out, const dt_checkpoint_shape *shape)
{
    for (int i = 0; i < shape->ndim; i++)
        dt_strbuf_add_fmt(out, "%s%lld", i > 0 ? " x " : "", (long long)shape->dim[i]);
}

static dt_status refuse_shape(const dt_checkpoint *checkpoint, const char *name,
                              const dt_checkpoint_shape *stored, const dt_checkpoint_shape *wanted,
                              dt_error *err)
{
    dt_strbuf there, here;

    dt_strbuf_init(&there);
    dt_strbuf_init(&here);
    add_shape(&there, stored);
    add_shape(&here, wanted);
    DT_FAIL(err, DT_ERR_RECIPE,
            "'%s': '%s' is %s in the checkpoint and %s in this model; resume with the model that "
            "it was trained with",
            checkpoint->path, name, there.data, here.data);
    dt_strbuf_release(&there);
    dt_strbuf_release(&here);
    return DT_ERR_RECIPE;
}

static bool same_shape(const dt_checkpoint_shape *a, const dt_checkpoint_shape *b)
{
    return a->ndim == b->ndim && memcmp(a->dim, b->dim, sizeof(a->dim)) == 0;
}

/* Find the tensor of a parameter. DT_ERR_RECIPE if it is missing or its shape is not the model's. */
static dt_status find_tensor(const dt_checkpoint_tensor **out, const dt_checkpoint *checkpoint,
                             const dt_param *param, dt_error *err)
{
    dt_checkpoint_shape wanted = dt_checkpoint_shape_of(param);

    *out = dt_checkpoint_index_find(&checkpoint->index, param->name);
    if (*out == NULL)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s' has no parameter '%s': it is from another model; resume with the "
                       "model that it was trained with",
                       checkpoint->path, param->name);
    if (!same_shape(&(*out)->shape, &wanted))
        return refuse_shape(checkpoint, param->name, &(*out)->shape, &wanted, err);
    return DT_OK;
}

dt_status dt_checkpoint_check_model(const dt_checkpoint *checkpoint, const dt_model *model,
                                    dt_error *err)
{
    dt_status st = DT_OK;
    const dt_checkpoint_tensor *tensor;
    int saved = 0;

    for (int i = 0; i < model->param_count; i++) {
        if (model->params[i].in_base)
            continue;
        DT_TRY(find_tensor(&tensor, checkpoint, &model->params[i], err));
        saved++;
    }
    if (checkpoint->index.tensor_count != saved)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' has %lld parameters, and this model has %d; resume with the model that it "
                 "was trained with",
                 checkpoint->path, (long long)checkpoint->index.tensor_count, saved);
out:
    return st;
}

static dt_status load_chunk(dt_checkpoint *checkpoint, const dt_model *model,
                            const dt_state_chunk *chunk, dt_error *err)
{
    dt_status st = DT_OK;
    const dt_checkpoint_tensor *tensor;

    if (model->params[chunk->param].in_base)
        return DT_OK;
    DT_TRY(find_tensor(&tensor, checkpoint, &model->params[chunk->param], err));
    for (int kind = 0; kind < DT_CHECKPOINT_KINDS; kind++)
        if (dt_state_chunk_data(chunk, kind) != NULL)
            DT_TRY(read_slice(dt_state_chunk_data(chunk, kind), checkpoint, tensor, kind,
                              &chunk->slice, err));
out:
    return st;
}

static dt_status load_chunks(dt_checkpoint *checkpoint, dt_strategy_state *state, dt_error *err)
{
    dt_status st = DT_OK;
    const dt_state_chunk *chunks;
    int count;

    DT_TRY(dt_checkpoint_check_model(checkpoint, state->model, err));
    DT_TRY(state->strategy->import_state(state, &chunks, &count, err));
    for (int i = 0; i < count; i++)
        DT_TRY(load_chunk(checkpoint, state->model, &chunks[i], err));
out:
    return st;
}

dt_status dt_checkpoint_load(dt_checkpoint *checkpoint, dt_strategy_state *state, dt_error *err)
{
    dt_status st = load_chunks(checkpoint, state, err);

    /* import_finish can be collective, so no rank may enter it alone */
    st = dt_checkpoint_agree(state->comm, st, "read the checkpoint", err);
    if (st == DT_OK)
        st = state->strategy->import_finish(state, err);
    return st;
}

dt_status dt_checkpoint_load_param(dt_checkpoint *checkpoint, const dt_param *param, float *out,
                                   dt_error *err)
{
    const dt_checkpoint_tensor *tensor;
    dt_slice wanted;
    dt_status st = DT_OK;

    DT_TRY(find_tensor(&tensor, checkpoint, param, err));
    wanted = (dt_slice){.box = dt_checkpoint_shape_box(&tensor->shape), .elems = param->elems};
    wanted.box.size[0] = param->dim[0];
    DT_TRY(read_slice(out, checkpoint, tensor, DT_CHECKPOINT_VALUE, &wanted, err));
out:
    return st;
}
