#include "engine/model/adapter.h"

#include <stdlib.h>

#include "engine/model/kind.h"

/* --- memory */

static void take(dt_tensor *tensor, dt_layout *memory)
{
    tensor->data = dt_layout_take(memory, dt_tensor_bytes(tensor));
}

void dt_adapters_take_table(dt_adapters *out, const dt_model_config *config, dt_layout *memory)
{
    if (config->lora.rank == 0)
        return;
    out->table = dt_tensor_1d(NULL, DT_I32, dt_lora_sizes_of(config).table);
    take(&out->table, memory);
}

void dt_adapters_take(dt_adapters *out, const dt_model_config *config, dt_layout *memory,
                      int64_t rows, bool backward)
{
    dt_lora_sizes sizes = dt_lora_sizes_of(config);
    int64_t wider = sizes.out > sizes.in ? sizes.out : sizes.in;
    size_t term_bytes =
        dt_tensor_ranks(&config->tensor) > 1 ? sizeof(float) : dt_dtype_bytes(config->dtype);

    if (config->lora.rank == 0)
        return;
    out->low = dt_tensor_2d(NULL, config->dtype, rows, sizes.ranks);
    take(&out->low, memory);
    out->spread = dt_tensor_1d(NULL, config->dtype, sizes.product);
    take(&out->spread, memory);
    out->term =
        dt_layout_take(memory, (size_t)(dt_lora_term_rows(config, rows) * wider) * term_bytes);
    if (!backward)
        return;
    out->dlow = out->low;
    take(&out->dlow, memory);
    out->dspread = dt_tensor_1d(NULL, DT_F32, sizes.product);
    take(&out->dspread, memory);
    if (config->lora.dropout == 0)
        return;
    out->dropped = dt_tensor_2d(NULL, config->dtype, rows, sizes.in);
    take(&out->dropped, memory);
}

/* Writes the ids of a joined weight: for row o and target j the row of B, or the row after all of B, which is 0. */
static void fill_ids(int32_t *ids, const dt_lora_join *join)
{
    int64_t all = 0, before = 0;

    for (int j = 0; j < join->count; j++)
        all += join->out[j];
    for (int j = 0; j < join->count; before += join->out[j++])
        for (int64_t o = 0; o < join->all_out; o++) {
            int64_t row = o - join->start[j];

            ids[o * join->count + j] =
                (int32_t)(row >= 0 && row < join->out[j] ? before + row : all);
        }
}

dt_status dt_adapters_open(dt_adapters *out, dt_model *model, int params, dt_error *err)
{
    const dt_model_config *config = &model->config;
    int64_t at = dt_lora_sizes_of(config).out;
    dt_device *device = model->device;
    int32_t *ids = NULL;
    int mask = 0;
    dt_lora_join join;
    dt_status st = DT_OK;

    for (int row = 0; row < DT_ADAPTER_ROWS; row++)
        out->a[row] = out->b[row] = -1;
    if (config->lora.rank == 0)
        return DT_OK;
    ids = calloc((size_t)dt_tensor_elems(&out->table), sizeof(*ids));
    if (ids == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the tables of the adapters");
    for (int64_t i = 0; i < at; i++)
        ids[i] = (int32_t)i;
    for (int next = 0; dt_lora_join_next(&join, config, &next); params += 2 * join.count) {
        for (int j = 0; j < join.count; j++) {
            out->a[join.row[j]] = params + j;
            out->b[join.row[j]] = params + join.count + j;
        }
        out->mask[join.first] = mask++;
        if (join.last == join.first)
            continue;
        out->table_at[join.first] = at;
        fill_ids(ids + at, &join);
        at += join.all_out * join.count;
    }
    DT_TRY(device->copy_in(device, out->table.data, ids, dt_tensor_bytes(&out->table), err));
    DT_TRY(device->synchronize(device, err));
out:
    free(ids);
    return st;
}

/* --- one layer */

/* The tensors of the join's targets as one: they are adjacent. */
static dt_tensor joined(const dt_model *model, int unit, const dt_lora_join *join,
                        const int *places,
                        dt_tensor (*view)(const dt_model *model, int unit, int which))
{
    dt_tensor all = view(model, unit, places[join->row[0]]);

    for (int j = 1; j < join->count; j++)
        all.dim[0] += view(model, unit, places[join->row[j]]).dim[0];
    return all;
}

dt_adapter dt_adapter_of(const dt_adapters *adapters, const dt_model *model, int layer, int first,
                         int last, bool backward, const dt_batch *dropout)
{
    const dt_model_config *config = &model->config;
    int32_t *ids = adapters->table.data;
    dt_adapter out = {.of = adapters};
    dt_lora_join join;
    int64_t rows;

    if (!dt_lora_join_of(&join, config, first, last))
        return (dt_adapter){0};
    rows = join.all_out * join.count;
    if (last > first)
        ids += adapters->table_at[first];
    out.ids = dt_tensor_2d(ids, DT_I32, 1, rows);
    out.a = joined(model, layer + 1, &join, adapters->a, dt_model_weight);
    out.b = joined(model, layer + 1, &join, adapters->b, dt_model_weight);
    out.scale = config->lora.scale;
    if (backward) {
        out.da = joined(model, layer + 1, &join, adapters->a, dt_model_grad);
        out.db = joined(model, layer + 1, &join, adapters->b, dt_model_grad);
    }
    if (dropout != NULL && config->lora.dropout > 0) {
        out.dropout = config->lora.dropout;
        out.key = dt_model_dropout_key(
            dropout, layer, (dt_philox_op)(DT_PHILOX_DROPOUT_ADAPTER + adapters->mask[first]));
    }
    return out;
}

/* The memory of a tensor with another shape (rows,columns). */
static dt_tensor shaped(const dt_tensor *memory, int64_t rows, int64_t columns)
{
    return dt_tensor_2d(memory->data, memory->dtype, rows, columns);
}

static dt_tensor low_of(const dt_adapter *adapter, const dt_tensor *memory, const dt_tensor *x)
{
    return shaped(memory, dt_tensor_rows(x), dt_tensor_rows(&adapter->a));
}

/* B' (O,R), or its gradient, as such or as rows of `rank` columns. */
static dt_tensor spread_of(const dt_adapter *adapter, const dt_tensor *memory, bool as_rows)
{
    int64_t rows = dt_tensor_elems(&adapter->ids), rank = dt_tensor_cols(&adapter->b);
    int64_t count = dt_tensor_rows(&adapter->a) / rank;

    return as_rows ? shaped(memory, rows, rank) : shaped(memory, rows / count, count * rank);
}

static dt_vocab_part rows_of_b(const dt_adapter *adapter)
{
    int64_t rows = dt_tensor_rows(&adapter->b);

    return (dt_vocab_part){.first = 0, .count = rows, .all = rows + 1};
}

/* Makes B'. */
static dt_status spread(dt_model *model, const dt_adapter *adapter, dt_error *err)
{
    dt_tensor rows = spread_of(adapter, &adapter->of->spread, true), none = {0};
    dt_vocab_part part = rows_of_b(adapter);

    return model->device->ops->embedding_forward(model->device, &rows, &adapter->ids, &adapter->b,
                                                 &none, adapter->scale, &part, err);
}

/* *out = dropout(x), and low = *out A^T. */
static dt_status reduce(dt_model *model, const dt_adapter *adapter, dt_tensor *out, dt_tensor *low,
                        const dt_tensor *x, dt_error *err)
{
    const dt_ops *ops = model->device->ops;
    dt_tensor none = {0};
    dt_status st = DT_OK;

    *out = shaped(x, dt_tensor_rows(x), dt_tensor_cols(x));
    if (adapter->dropout > 0) {
        *out = shaped(&adapter->of->dropped, dt_tensor_rows(x), dt_tensor_cols(x));
        DT_TRY(ops->dropout_forward(model->device, out, x, adapter->dropout, &adapter->key, err));
    }
    *low = low_of(adapter, &adapter->of->low, x);
    DT_TRY(ops->matmul_forward(model->device, low, out, &adapter->a, &none, err));
out:
    return st;
}

/* `rows` rows of a matrix, from row `first` on. */
static dt_tensor rows_of(const dt_tensor *x, int64_t first, int64_t rows)
{
    int64_t columns = dt_tensor_cols(x);
    unsigned char *data = x->data;

    data += (size_t)(first * columns) * dt_dtype_bytes(x->dtype);
    return dt_tensor_2d(data, x->dtype, rows, columns);
}

/* y += low w^T (w (O,R)), or with back y += low w (w (R,O)): a chunk of rows at a time. */
static dt_status add_product(dt_model *model, const dt_adapter *adapter, dt_tensor *y,
                             const dt_tensor *low, const dt_tensor *w, bool back, dt_error *err)
{
    const dt_ops *ops = model->device->ops;
    int64_t all = dt_tensor_rows(y), most = dt_lora_term_rows(&model->config, all);
    dt_tensor none = {0};
    dt_status st = DT_OK;

    for (int64_t first = 0; first < all; first += most) {
        int64_t rows = all - first < most ? all - first : most;
        dt_tensor in = rows_of(low, first, rows), to = rows_of(y, first, rows);
        dt_tensor term = dt_tensor_2d(adapter->of->term, y->dtype, rows, dt_tensor_cols(y));

        DT_TRY(back ? ops->matmul_backward_input(model->device, &term, &in, w, err)
                    : ops->matmul_forward(model->device, &term, &in, w, &none, err));
        DT_TRY(ops->residual_forward(model->device, &to, &to, &term, err));
    }
out:
    return st;
}

dt_status dt_adapter_forward(dt_model *model, const dt_adapter *adapter, dt_tensor *y,
                             const dt_tensor *x, dt_error *err)
{
    dt_tensor in, low, b;
    dt_status st = DT_OK;

    if (adapter->of == NULL)
        return DT_OK;
    b = spread_of(adapter, &adapter->of->spread, false);
    DT_TRY(spread(model, adapter, err));
    DT_TRY(reduce(model, adapter, &in, &low, x, err));
    DT_TRY(add_product(model, adapter, y, &low, &b, false, err));
out:
    return st;
}

/* Leaves dlow, the gradient of dropout(x) A^T. */
dt_status dt_adapter_backward(dt_model *model, const dt_adapter *adapter, const dt_tensor *dy,
                              const dt_tensor *x, dt_error *err)
{
    const dt_ops *ops = model->device->ops;
    dt_device *device = model->device;
    dt_tensor in, low, dlow, b, db, db_rows, da, none = {0};
    dt_vocab_part part;
    dt_status st = DT_OK;

    if (adapter->of == NULL)
        return DT_OK;
    b = spread_of(adapter, &adapter->of->spread, false);
    db = spread_of(adapter, &adapter->of->dspread, false);
    db_rows = spread_of(adapter, &adapter->of->dspread, true);
    dlow = low_of(adapter, &adapter->of->dlow, x);
    da = adapter->da;
    part = rows_of_b(adapter);
    DT_TRY(spread(model, adapter, err));
    DT_TRY(reduce(model, adapter, &in, &low, x, err));
    DT_TRY(ops->zero(device, &db, err));
    DT_TRY(ops->matmul_backward_weight(device, &db, &none, dy, &low, err));
    db = adapter->db;
    DT_TRY(ops->embedding_backward(device, &db, &none, &db_rows, &adapter->ids, adapter->scale,
                                   &part, err));
    DT_TRY(ops->matmul_backward_input(device, &dlow, dy, &b, err));
    DT_TRY(ops->matmul_backward_weight(device, &da, &none, &dlow, &in, err));
out:
    return st;
}

dt_status dt_adapter_backward_input(dt_model *model, const dt_adapter *adapter, dt_tensor *dx,
                                    dt_error *err)
{
    const dt_ops *ops = model->device->ops;
    dt_tensor dlow, dropped;
    dt_status st = DT_OK;

    if (adapter->of == NULL)
        return DT_OK;
    dlow = low_of(adapter, &adapter->of->dlow, dx);
    if (adapter->dropout == 0)
        return add_product(model, adapter, dx, &dlow, &adapter->a, true, err);
    dropped = shaped(&adapter->of->dropped, dt_tensor_rows(dx), dt_tensor_cols(dx));
    DT_TRY(ops->matmul_backward_input(model->device, &dropped, &dlow, &adapter->a, err));
    DT_TRY(ops->dropout_backward(model->device, &dropped, &dropped, adapter->dropout, &adapter->key,
                                 err));
    DT_TRY(ops->residual_forward(model->device, dx, dx, &dropped, err));
out:
    return st;
}
