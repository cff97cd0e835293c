#include "engine/checkpoint/shape.h"

#include <string.h>

#include "base/banned.h"

bool dt_checkpoint_shape_is_padded(const char *name)
{
    return strcmp(name, "wte.weight") == 0 || strcmp(name, "lm_head.weight") == 0;
}

dt_checkpoint_shape dt_checkpoint_shape_of(const dt_model *model, const dt_param *param)
{
    dt_checkpoint_shape shape = {.ndim = param->ndim, .dim = {param->dim[0], param->dim[1]}};

    if (dt_checkpoint_shape_is_padded(param->name))
        shape.dim[0] = model->config.vocab;
    shape.elems = 1;
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
