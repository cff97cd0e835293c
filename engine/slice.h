/* slice: a part of a parameter, as ranks hold and checkpoints store it.
 *
 *   box     the part along each dimension: what tensor parallel gives to a rank
 *   slice   a range of the box, flattened row by row: what fsdp leaves of it to a data rank
 *
 *   a parameter of (4, 6), the box {start (0, 3), size (4, 3)}, of it the elements 2 to 6:
 *
 *     . . . - - #        . others'
 *     . . . # # #        - in the box, before and behind the range
 *     . . . # - -        # the slice
 *     . . . - - -
 *
 * A whole parameter is the box of all its dimensions and the range of all its elements.
 */
#ifndef DT_ENGINE_SLICE_H
#define DT_ENGINE_SLICE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_BOX_DIMS 4

typedef struct dt_box {
    int ndim;
    int64_t start[DT_BOX_DIMS], size[DT_BOX_DIMS]; /* behind ndim: 0 and 1 */
} dt_box;

typedef struct dt_slice {
    dt_box box;
    int64_t start_elems, elems; /* of the flattened box */
} dt_slice;

/* All of a parameter of these dimensions. */
dt_box dt_box_whole(const int64_t *dim, int ndim);
int64_t dt_box_elems(const dt_box *box);
bool dt_box_equal(const dt_box *a, const dt_box *b);
/* What both have; false where that is nothing, and *out is then unspecified. */
bool dt_box_meet(dt_box *out, const dt_box *a, const dt_box *b);

/* All of a box. */
dt_slice dt_slice_whole(const dt_box *box);

/* What two slices of one parameter share, in runs that lie side by side in both:
 *
 *   for (dt_overlap run = dt_overlap_of(&a, &b); dt_overlap_next(&run);)
 *       memcpy(a_data + run.at_a, b_data + run.at_b, run.elems * sizeof(float));
 */
typedef struct dt_overlap {
    int64_t at_a, at_b, elems; /* of this run, counted from the first element of each slice */
    /* --- its own */
    const dt_slice *a, *b; /* borrowed */
    dt_box both;
    int64_t index[DT_BOX_DIMS]; /* of the next row, in `both` */
    int row_dim;                /* rows of `both` are whole from this dimension on */
    int64_t row_elems;
    bool more;
} dt_overlap;

dt_overlap dt_overlap_of(const dt_slice *a, const dt_slice *b);
/* False where there is no further run. They come in the order of the parameter's elements. */
bool dt_overlap_next(dt_overlap *run);

#ifdef __cplusplus
}
#endif
#endif
