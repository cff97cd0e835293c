/* tensor: describes a tensor, its type and its memory, and the slices of a tensor that a rank holds.
 *
 * Row-major and contiguous; the last dimension varies fastest.
 */
#ifndef DT_ENGINE_TENSOR_H
#define DT_ENGINE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_MAX_DIMS 4

typedef struct dt_tensor {
    void *data; /* NULL: the tensor is omitted (for example a missing bias) */
    dt_dtype dtype;
    int ndim;
    int64_t dim[DT_MAX_DIMS];
} dt_tensor;

int64_t dt_tensor_elems(const dt_tensor *tensor);
size_t dt_tensor_bytes(const dt_tensor *tensor);

dt_tensor dt_tensor_1d(void *data, dt_dtype dtype, int64_t a);
dt_tensor dt_tensor_2d(void *data, dt_dtype dtype, int64_t a, int64_t b);
dt_tensor dt_tensor_3d(void *data, dt_dtype dtype, int64_t a, int64_t b, int64_t c);

/* rows: the product of all dimensions except the last; cols: the last. Most ops work on rows. */
int64_t dt_tensor_rows(const dt_tensor *tensor);
int64_t dt_tensor_cols(const dt_tensor *tensor);

/* slice: describes a part of a parameter, as ranks hold it and checkpoints store it.
 *
 *   box     a range in each dimension: what tensor parallelism gives to a rank
 *   slice   a range of the box, flattened row by row: the share of a data rank in fsdp
 *
 *   a parameter of (4, 6), the box {start (0, 3), size (4, 3)}, and its elements 2 to 6:
 *
 *     . . . - - #        . outside the box
 *     . . . # # #        - in the box, before and after the range
 *     . . . # - -        # the slice
 *     . . . - - -
 *
 * A whole parameter is the box of all its dimensions and the range of all its elements.
 */

#define DT_BOX_DIMS 4

typedef struct dt_box {
    int ndim;
    /* start and size per dimension; after ndim 0 and 1 */
    int64_t start[DT_BOX_DIMS], size[DT_BOX_DIMS];
} dt_box;

typedef struct dt_slice {
    dt_box box;
    int64_t start_elems, elems; /* range in the flattened box */
} dt_slice;

/* The box of a whole parameter of these dimensions. */
dt_box dt_box_whole(const int64_t *dim, int ndim);
int64_t dt_box_elems(const dt_box *box);
bool dt_box_equal(const dt_box *a, const dt_box *b);
/* Intersection of two boxes; false if it is empty, and *out is then unspecified. */
bool dt_box_meet(dt_box *out, const dt_box *a, const dt_box *b);

/* The slice of a whole box. */
dt_slice dt_slice_whole(const dt_box *box);

/* Iterates over the intersection of two slices of one parameter, in runs that are contiguous in both:
 *
 *   for (dt_overlap run = dt_overlap_of(&a, &b); dt_overlap_next(&run);)
 *       memcpy(a_data + run.at_a, b_data + run.at_b, run.elems * sizeof(float));
 */
typedef struct dt_overlap {
    int64_t at_a, at_b,
        elems; /* start and length of this run, relative to the first element of each slice */
    /* --- private */
    const dt_slice *a, *b; /* the two slices, borrowed */
    dt_box both;
    int64_t index[DT_BOX_DIMS]; /* index of the next row in `both` */
    int row_dim;                /* rows extend over the whole of `both` from this dimension on */
    int64_t row_elems;
    bool more;
} dt_overlap;

dt_overlap dt_overlap_of(const dt_slice *a, const dt_slice *b);
/* Advance to the next run; false if there is none. Runs come in the order of the parameter's
 * elements. */
bool dt_overlap_next(dt_overlap *run);

#ifdef __cplusplus
}
#endif

#endif
