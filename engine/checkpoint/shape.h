/* shape: what a parameter looks like in a checkpoint.
 *
 * Rows of padding (dt_param.stored_rows: those behind the vocabulary of a token embedding, say) are
 * not stored: how far a parameter is padded is the business of the program that loads it, which
 * keeps such rows (and their moments) zero. As they are the last rows, what is stored is the front
 * of the flattened parameter.
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
    int64_t dim[DT_PARAM_DIMS]; /* those behind ndim are 1 */
    int64_t elems;
} dt_checkpoint_shape;

dt_checkpoint_shape dt_checkpoint_shape_of(const dt_param *param);

/* The box of a whole parameter as it is stored. */
dt_box dt_checkpoint_shape_box(const dt_checkpoint_shape *shape);
/* What is stored of a slice in memory: all but the padding. It is the front of the slice, and may
 * have no elements. */
dt_slice dt_checkpoint_shape_clip(const dt_checkpoint_shape *shape, const dt_slice *held);

#ifdef __cplusplus
}
#endif
#endif
