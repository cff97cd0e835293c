/* adapter: computes the term of an adapter of low rank in a linear layer, and its gradients.
 *
 * Formula    y += dropout(x) A^T B'^T, with B' = scale B. Of joined weights (q, k and v) the A of each target are one
 *            below the other, and their B are blocks on the diagonal of B'; rows of weights without an adapter are 0
 * Shapes     x (N,I)  y (N,O)  A (R,I)  B' (O,R), R = rank times the targets of the joined weight. B (O',rank) has the
 *            rows of the targets alone
 * B'         rows of B that an embedding op copies by a table of ids, scaled; its backward adds to the gradient of B
 * Dropout    one mask for all targets of a joined weight, from a key of its own
 * Memory     B', the products of rank R and one chunk of a term, shared by all layers (dt_adapters_take). Backward
 *            computes dropout(x) A^T again: nothing is kept for it
 * Ranks      each computes with what it holds; the caller sums y or dx (linear.h)
 */
#ifndef DT_ENGINE_MODEL_ADAPTER_H
#define DT_ENGINE_MODEL_ADAPTER_H

#include "engine/model/model.h"
#include "engine/philox.h"
#include "recipes/architecture/decoder.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_ADAPTER_ROWS 32 /* rows of a block's table of parameters, at most */

/* The adapters of a model: where their parameters are, and memory of a pass. */
typedef struct dt_adapters {
    /* by the row of a weight in a block's table: its A and B among the unit's parameters; -1: none */
    int a[DT_ADAPTER_ROWS], b[DT_ADAPTER_ROWS];
    int64_t table_at[DT_ADAPTER_ROWS]; /* by the first row of a joined weight: its ids in `table` */
    int mask[DT_ADAPTER_ROWS];         /* likewise: number of its mask */
    dt_tensor table;                   /* I32: 0 1 2 .., then the ids of joined weights */
    dt_tensor low, dlow;               /* act (N,R): dropout(x) A^T, and the gradient of it */
    dt_tensor spread, dspread;         /* act, F32 (O,R): B', and its gradient */
    dt_tensor dropped;                 /* act (N,I): dropout(x); no data without dropout */
    void *term;                        /* rows of a term of y or dx */
} dt_adapters;

/* The adapter of one layer in a pass. */
typedef struct dt_adapter {
    const dt_adapters *of; /* NULL: none */
    dt_tensor a, b;        /* act (R,I), (O',rank) */
    dt_tensor da, db;      /* F32; no data without backward */
    dt_tensor ids;         /* I32 (1, O R / rank) */
    double scale, dropout; /* dropout 0: none in this pass */
    dt_philox_key key;
} dt_adapter;

/* Take memory of a pass of `rows` rows: first what outlives passes, then the rest. */
void dt_adapters_take_table(dt_adapters *out, const dt_model_config *config, dt_layout *memory);
void dt_adapters_take(dt_adapters *out, const dt_model_config *config, dt_layout *memory,
                      int64_t rows, bool backward);
/* Find the parameters, and fill the table. `params`: of a block, before those of adapters. */
dt_status dt_adapters_open(dt_adapters *out, dt_model *model, int params, dt_error *err);

/* The adapter of rows first .. last of block `layer`, used as one weight. dropout: as in dt_block_call. */
dt_adapter dt_adapter_of(const dt_adapters *adapters, const dt_model *model, int layer, int first,
                         int last, bool backward, const dt_batch *dropout);

/* y += the term. */
dt_status dt_adapter_forward(dt_model *model, const dt_adapter *adapter, dt_tensor *y,
                             const dt_tensor *x, dt_error *err);
/* Add to the gradients of A and B; and leave what dt_adapter_backward_input needs, which must be the next call. */
dt_status dt_adapter_backward(dt_model *model, const dt_adapter *adapter, const dt_tensor *dy,
                              const dt_tensor *x, dt_error *err);
/* dx += the term. */
dt_status dt_adapter_backward_input(dt_model *model, const dt_adapter *adapter, dt_tensor *dx,
                                    dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
