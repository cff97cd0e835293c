/* division: says which part of each parameter a rank of a tensor group holds (tensor parallelism).
 *
 * N ranks divide every layer: the heads of attention, the columns inside the multi-layer perceptron, and the
 * vocabulary. A matrix that makes such columns is divided by rows, and one that reads them by columns (Shoeybi et
 * al. 2019, https://arxiv.org/abs/1909.08053). Norms and everything else of the residual stream's width are held by
 * each rank.
 */
#ifndef DT_RECIPES_ARCHITECTURE_DIVISION_H
#define DT_RECIPES_ARCHITECTURE_DIVISION_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_PARAM_DIMS 4
#define DT_PARTS_MOST 3 /* of dt_param_held.parts */

typedef enum dt_param_cut {
    DT_CUT_NONE,    /* each rank holds all of it, and computes its whole gradient */
    DT_CUT_ROWS,    /* each has an equal range of dim[0] */
    DT_CUT_COLUMNS, /* each has an equal range of dim[1] */
    DT_CUT_THIRDS,  /* dim[0] has three equal parts (q, k and v), each divided by rows */
    DT_CUT_KEYS, /* rows of key heads; if these are fewer than the ranks, adjacent ranks share one */
    DT_CUT_SUMMED /* each holds all of it, and computes a term of its gradient */
} dt_param_cut;

/* A rank of a group of `size` ranks that divide layers. */
typedef struct dt_tensor_place {
    int64_t rank, size; /* size 0 or 1: layers are whole */
} dt_tensor_place;

/* The part of a parameter that one rank holds. */
typedef struct dt_param_held {
    int64_t dim[DT_PARAM_DIMS];
    int64_t elems;
    int cut_dim;     /* dimension that is divided; -1: none */
    int parts;       /* equal parts of this dimension, each divided by itself */
    int64_t start;   /* first index of this rank's slice, within each part */
    int64_t sharers; /* adjacent ranks that hold the same slice; 1: no other rank holds it */
    bool summed;     /* the gradients of the sharers are terms of a sum; otherwise they are equal */
    bool counted; /* this rank is the first of the sharers: norms and checkpoints count it here */
} dt_param_held;

/* Number of ranks that divide layers, at least 1. */
static inline int64_t dt_tensor_ranks(const dt_tensor_place *place)
{
    return place->size > 1 ? place->size : 1;
}

/* A rank's share of `heads` key heads, at least one of them. */
int64_t dt_tensor_key_heads(const dt_tensor_place *place, int64_t heads);

/* key_heads: heads in dim[0], for DT_CUT_KEYS. The sizes must be divisible (dt_tensor_divides). */
dt_param_held dt_param_hold(const int64_t *dim, dt_param_cut cut, int64_t key_heads,
                            const dt_tensor_place *place);

/* Whether `ranks` can divide a size. shared: as for key heads, a size that divides the ranks will do as well. */
bool dt_tensor_divides(int64_t size, int64_t ranks, bool shared);

#ifdef __cplusplus
}
#endif
#endif
