#include "engine/checkpoint/shape.h"

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
