/* index_pieces: the stored shape of a parameter, and its pieces in the index, which are checked to be
 * complete. */
#include <stdlib.h>

#include "engine/checkpoint/index.h"

/* --- shapes */

_Static_assert(DT_BOX_DIMS == DT_PARAM_DIMS, "a box has the dimensions of its parameter");

dt_checkpoint_shape dt_checkpoint_shape_of(const dt_param *param)
{
    dt_checkpoint_shape shape = {.ndim = param->ndim, .elems = 1};

    for (int i = 0; i < DT_PARAM_DIMS; i++)
        shape.dim[i] = param->dim[i];
    shape.dim[0] = param->stored_rows;
    for (int i = 0; i < shape.ndim; i++)
        shape.elems *= shape.dim[i];
    DT_ASSERT(shape.elems <= param->elems);
    return shape;
}

dt_box dt_checkpoint_shape_box(const dt_checkpoint_shape *shape)
{
    return dt_box_whole(shape->dim, shape->ndim);
}

dt_slice dt_checkpoint_shape_clip(const dt_checkpoint_shape *shape, const dt_slice *held)
{
    dt_box whole = dt_checkpoint_shape_box(shape);
    dt_slice out = *held;
    int64_t left = 0;

    if (dt_box_meet(&out.box, &held->box, &whole))
        left = dt_box_elems(&out.box) - held->start_elems;
    out.elems = left <= 0 ? 0 : held->elems < left ? held->elems : left;
    return out;
}

/* --- pieces */

/* Boxes are compared pairwise; the limit bounds the time for a malicious document. */
#define MAX_BOXES 1024

static json_t *numbers_make(const int64_t *numbers, int count)
{
    json_t *out = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(out, json_integer((json_int_t)numbers[i]));
    return out;
}

json_t *dt_checkpoint_piece_make(const char *file, const char *key, const dt_slice *slice,
                                 const dt_box *whole)
{
    const dt_box *box = &slice->box;
    json_t *out = json_pack("{s:s, s:s, s:I, s:I}", "file", file, "key", key, "start",
                            (json_int_t)slice->start_elems, "elems", (json_int_t)slice->elems);

    if (!dt_box_equal(box, whole))
        json_object_set_new(out, "box",
                            json_pack("{s:o, s:o}", "start", numbers_make(box->start, box->ndim),
                                      "size", numbers_make(box->size, box->ndim)));
    return out;
}

static dt_status numbers_parse(int64_t *out, const json_t *box, const char *key, int count,
                               const char *where, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *list;

    DT_TRY(dt_json_get_array(&list, box, key, where, err));
    if (json_array_size(list) != (size_t)count)
        DT_THROW(err, DT_ERR_CORRUPT, "%s: the '%s' of a box has %zu numbers, not %d", where, key,
                 json_array_size(list), count);
    for (int d = 0; d < count; d++) {
        const json_t *number = json_array_get(list, (size_t)d);

        out[d] = json_is_integer(number) ? json_integer_value(number) : -1;
    }
out:
    return st;
}

static dt_status box_parse(dt_box *out, const json_t *json, const dt_box *whole, const char *where,
                           dt_error *err)
{
    dt_status st = DT_OK;
    json_t *box;

    *out = *whole;
    if (json_object_get(json, "box") == NULL)
        return DT_OK;
    DT_TRY(dt_json_get_object(&box, json, "box", where, err));
    DT_TRY(numbers_parse(out->start, box, "start", whole->ndim, where, err));
    DT_TRY(numbers_parse(out->size, box, "size", whole->ndim, where, err));
    for (int d = 0; d < whole->ndim; d++)
        if (out->start[d] < 0 || out->size[d] < 1 || out->start[d] >= whole->size[d] ||
            out->size[d] > whole->size[d] - out->start[d])
            DT_THROW(err, DT_ERR_CORRUPT, "%s: a box reaches beyond its parameter", where);
out:
    return st;
}

dt_status dt_checkpoint_slice_parse(dt_slice *out, const json_t *json, const dt_box *whole,
                                    const char *where, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems;

    DT_TRY(box_parse(&out->box, json, whole, where, err));
    DT_TRY(dt_checkpoint_get_count(&out->start_elems, json, "start", where, err));
    DT_TRY(dt_checkpoint_get_count(&out->elems, json, "elems", where, err));
    elems = dt_box_elems(&out->box);
    if (out->start_elems > elems || out->elems > elems - out->start_elems)
        DT_THROW(err, DT_ERR_CORRUPT, "%s: a piece reaches beyond its parameter", where);
out:
    return st;
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Sorts by box, and within a box by position. */
static int by_box(const void *a, const void *b)
{
    const dt_slice *left = &((const dt_checkpoint_piece *)a)->slice;
    const dt_slice *right = &((const dt_checkpoint_piece *)b)->slice;
    int order = 0;

    for (int d = 0; d < DT_BOX_DIMS && order == 0; d++)
        order = compare(left->box.start[d], right->box.start[d]);
    for (int d = 0; d < DT_BOX_DIMS && order == 0; d++)
        order = compare(left->box.size[d], right->box.size[d]);
    return order != 0 ? order : compare(left->start_elems, right->start_elems);
}

/* *count: how many of the items belong to the first box, which they must fill completely. */
static dt_status box_filled(int64_t *count, const dt_checkpoint_piece *items, int64_t most,
                            const char *where, dt_error *err)
{
    const dt_box *box = &items[0].slice.box;
    int64_t at = 0, elems = dt_box_elems(box), i = 0;

    for (; i < most && dt_box_equal(&items[i].slice.box, box); i++) {
        const dt_slice *slice = &items[i].slice;

        if (slice->start_elems != at || slice->elems == 0)
            return DT_FAIL(err, DT_ERR_CORRUPT, "%s: pieces %s at element %lld", where,
                           slice->start_elems > at ? "leave a gap" : "overlap", (long long)at);
        at += slice->elems;
    }
    *count = i;
    if (at != elems)
        return DT_FAIL(err, DT_ERR_CORRUPT, "%s: pieces end at element %lld of %lld", where,
                       (long long)at, (long long)elems);
    return DT_OK;
}

dt_status dt_checkpoint_pieces_cover(dt_checkpoint_pieces *pieces, const dt_box *whole,
                                     const char *where, dt_error *err)
{
    const dt_box *boxes[MAX_BOXES];
    int64_t box_count = 0, elems = 0, count = 0;
    dt_status st = DT_OK;
    dt_box both;

    qsort(pieces->items, (size_t)pieces->count, sizeof(*pieces->items), by_box);
    for (int64_t i = 0; i < pieces->count; i += count) {
        const dt_box *box = &pieces->items[i].slice.box;

        DT_TRY(box_filled(&count, &pieces->items[i], pieces->count - i, where, err));
        if (box_count == MAX_BOXES)
            DT_THROW(err, DT_ERR_CORRUPT, "%s: the parameter has more than %d boxes", where,
                     MAX_BOXES);
        for (int64_t k = 0; k < box_count; k++)
            if (dt_box_meet(&both, box, boxes[k]))
                DT_THROW(err, DT_ERR_CORRUPT, "%s: boxes overlap", where);
        boxes[box_count++] = box;
        elems += dt_box_elems(box);
    }
    if (elems != dt_box_elems(whole))
        DT_THROW(err, DT_ERR_CORRUPT, "%s: boxes cover %lld of %lld elements", where,
                 (long long)elems, (long long)dt_box_elems(whole));
out:
    return st;
}
