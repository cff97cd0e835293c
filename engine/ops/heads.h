/* heads: rows of heads that lie inside wider rows, as attention reads and writes them.
 *
 *   packed          one tensor (B,T,3C), three views, 3C apart from row to row
 *   grouped heads   k and v of fewer heads than q: head h of q goes with head h / (H/G) of theirs
 *   another source  q of one sequence, k and v of another: T of the two differ
 *   grown           q are the last rows of a sequence, k and v all that are kept of it
 *
 * Element  d of head h of row t of sequence b is data[b*sequence_stride + t*row_stride + h*D + d]
 * Owns     nothing
 */
#ifndef DT_ENGINE_OPS_HEADS_H
#define DT_ENGINE_OPS_HEADS_H

#include "engine/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_heads {
    void *data;
    dt_dtype dtype;
    int64_t batch, rows, heads, width;   /* B T H D */
    int64_t row_stride, sequence_stride; /* elements */
} dt_heads;

/* What one call attends with, or the gradients of that. */
typedef struct dt_qkv {
    dt_heads q; /* (B,Q,H,D) */
    dt_heads k; /* (B,K,G,D), H a multiple of G */
    dt_heads v; /* (B,K,G,D) */
} dt_qkv;

/* `heads` heads of `width` columns each, from column `first` of x (B,T,columns) on. */
static inline dt_heads dt_heads_of(const dt_tensor *x, int64_t first, int64_t heads, int64_t width)
{
    int64_t columns = x->dim[2];
    dt_heads h = {(char *)x->data + (size_t)first * dt_dtype_bytes(x->dtype),
                  x->dtype,
                  x->dim[0],
                  x->dim[1],
                  heads,
                  width,
                  columns,
                  x->dim[1] * columns};

    return h;
}

/* The last rows of every sequence. */
static inline dt_heads dt_heads_last(dt_heads h, int64_t rows)
{
    h.data = (char *)h.data + (size_t)((h.rows - rows) * h.row_stride) * dt_dtype_bytes(h.dtype);
    h.rows = rows;
    return h;
}

/* qkv (B,T,3C): q, k, v, each `heads` heads. */
static inline dt_qkv dt_qkv_packed(const dt_tensor *qkv, int64_t heads)
{
    int64_t c = qkv->dim[2] / 3;
    dt_qkv views = {dt_heads_of(qkv, 0, heads, c / heads), dt_heads_of(qkv, c, heads, c / heads),
                    dt_heads_of(qkv, 2 * c, heads, c / heads)};

    return views;
}

#ifdef __cplusplus
}
#endif
#endif
