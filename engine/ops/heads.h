/* heads: describes strided views of attention heads inside wider rows.
 *
 *   packed          one tensor (B,T,3C), three views with a row stride of 3C
 *   grouped heads   k and v have fewer heads than q: head h of q uses head h / (H/G) of k and v
 *   cross attention q is of one sequence, k and v of another: their T differ
 *   KV cache        q is the last rows of a sequence, k and v all cached rows
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

/* The inputs of one attention call, or their gradients. */
typedef struct dt_qkv {
    dt_heads q; /* (B,Q,H,D) */
    dt_heads k; /* (B,K,G,D), H a multiple of G */
    dt_heads v; /* (B,K,G,D) */
} dt_qkv;

/* Returns a view of `heads` heads of `width` columns each, starting at column `first` of x (B,T,columns). */
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

/* Returns a view of the last `rows` rows of every sequence. */
static inline dt_heads dt_heads_last(dt_heads h, int64_t rows)
{
    h.data = (char *)h.data + (size_t)((h.rows - rows) * h.row_stride) * dt_dtype_bytes(h.dtype);
    h.rows = rows;
    return h;
}

/* Returns views of q, k and v, each with `heads` heads, in qkv (B,T,3C). */
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
