/* shape: gives the shape of a parameter as stored in a checkpoint.
 *
 * Padding rows (dt_param.stored_rows; for example those of a token embedding after the vocabulary) are
 * not stored: the padding is up to the program that loads the parameter, which keeps such rows
 * (and their moments) zero. As they are the last rows, the stored part is a prefix of the flattened
 * parameter.
 */
#ifndef DT_ENGINE_CHECKPOINT_SHAPE_H
#define DT_ENGINE_CHECKPOINT_SHAPE_H

#include "engine/model/model.h"
#include "engine/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_checkpoint_shape {
    int ndim;
    int64_t dim[DT_PARAM_DIMS]; /* dimensions; those after ndim are 1 */
    int64_t elems;
} dt_checkpoint_shape;

dt_checkpoint_shape dt_checkpoint_shape_of(const dt_param *param);

/* The box of a whole parameter as stored. */
dt_box dt_checkpoint_shape_box(const dt_checkpoint_shape *shape);
/* The stored part of a slice in memory: all except padding. It is a prefix of the slice, and can be
 * empty. */
dt_slice dt_checkpoint_shape_clip(const dt_checkpoint_shape *shape, const dt_slice *held);

#ifdef __cplusplus
}
#endif
#endif
