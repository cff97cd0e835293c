/* block: a block of Llama, forward and backward: the table of rotary angles, attention, then the
 * perceptron. */
#include <math.h>
#include <stdlib.h>

#include "engine/model/llama/model_int.h"
#include "recipes/architecture/decoder.h"

#define TWO_PI 6.283185307179586

/* Frequency scaling of Llama 3.1, by how many wavelengths fit into the original context: many:
 * unchanged; few: divided by rope_factor; in between: linear interpolation. */
static double stretch_long_waves(double frequency, const dt_llama_config *config)
{
    double fits = (double)config->rope_original_tokens * frequency / TWO_PI;
    double low = config->rope_low_freq_factor, high = config->rope_high_freq_factor;
    double share = (fits - low) / (high - low); /* share of the frequency that stays unchanged */

    if (share <= 0)
        return frequency / config->rope_factor;
    if (share >= 1)
        return frequency;
    return (1 - share) * frequency / config->rope_factor + share * frequency;
}

static float frequency_of(int64_t pair, const dt_llama_config *config)
{
    double frequency = pow(config->rope_theta, -2.0 * (double)pair / (double)config->head_width);

    switch (config->rope_scaling) {
    case DT_ROPE_LINEAR:
        frequency /= config->rope_factor;
        break;
    case DT_ROPE_LLAMA3:
        frequency = stretch_long_waves(frequency, config);
        break;
    case DT_ROPE_NONE:
        break;
    }
    return (float)frequency;
}

/* Compute one row of the table: D/2 cosines, then D/2 sines. Frequency and angle are rounded to fp32
 * exactly where Hugging Face transformers does: at position 1000 the rounding changes the angle, so it is
 * part of the definition. */
static void llama_angles_row(float *out, int64_t position, const dt_llama_config *config)
{
    int64_t half = config->head_width / 2;

    for (int64_t i = 0; i < half; i++) {
        float angle = (float)position * frequency_of(i, config);

        out[i] = (float)cos((double)angle);
        out[half + i] = (float)sin((double)angle);
    }
}

dt_status dt_llama_angles_fill(dt_model *model, dt_error *err)
{
    const dt_llama_config *config = &model->config.llama;
    const dt_decoder *state = model->state;
    int64_t context = model->config.decoder.context;
    size_t bytes = (size_t)(context * config->head_width) * sizeof(float);
    float *host = malloc(bytes);
    dt_status st = DT_OK;

    if (!host)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the angles of %lld positions",
                 (long long)context);
    for (int64_t t = 0; t < context; t++)
        llama_angles_row(host + t * config->head_width, t, config);
    DT_TRY(model->device->copy_in(model->device, state->lasting[DT_LLAMA_ANGLES].data, host, bytes,
                                  err));
    DT_TRY(model->device->synchronize(model->device, err));
out:
    free(host);
    return st;
}

dt_tensor dt_llama_angles(const dt_decoder *state)
{
    const dt_tensor *angles = &state->lasting[DT_LLAMA_ANGLES];
    int64_t first = state->first_position, width = angles->dim[1];
    float *rows = angles->data;

    if (state->growth.each)
        return dt_tensor_2d(state->lasting[DT_LLAMA_ROW_ANGLES].data, DT_F32, state->B, width);
    return dt_tensor_2d(rows + first * width, DT_F32, angles->dim[0] - first, width);
}

dt_status dt_llama_angles_gather(dt_model *model, dt_error *err)
{
    const dt_decoder *state = model->state;
    dt_tensor rows = dt_llama_angles(state), none = {0};

    return model->device->ops->embedding_forward(model->device, &rows, &state->growth.places,
                                                 &state->lasting[DT_LLAMA_ANGLES], &none, 1, NULL,
                                                 err);
}

/* attention: computes mid = x + dropout(o_proj(attention(q, k, v))), with q k v from norm_1(x), q
 * and k rotated. */

/* Views of queries, keys and values in x (B,T,columns), in this order. The values are in v (B,T,Q)
 * if x has none. */
static dt_qkv views_of(const dt_model_config *config, const dt_tensor *x, const dt_tensor *v)
{
    int64_t D = config->llama.head_width, G = dt_llama_kv_heads(config);
    int64_t A = dt_llama_q_width(config);

    return (dt_qkv){dt_heads_of(x, 0, dt_decoder_heads(config), D), dt_heads_of(x, A, G, D),
                    dt_heads_of(v, A + dt_llama_kv_width(config), G, D)};
}

/* Views of q k v before norm and rotation; under incremental decoding, of the new tokens only. */
static dt_qkv made(const dt_model_config *config, const dt_llama_block *a)
{
    int64_t D = config->llama.head_width, G = dt_llama_kv_heads(config), T = a->qkv.dim[1];

    if (a->keys.data == NULL)
        return views_of(config, &a->qkv, &a->qkv);
    return (dt_qkv){dt_heads_of(&a->qkv, 0, dt_decoder_heads(config), D),
                    dt_heads_last(dt_heads_of(&a->keys, 0, G, D), T),
                    dt_heads_last(dt_heads_of(&a->values, 0, G, D), T)};
}

/* Views of q k v as attention reads them: after norm and rotation. */
static dt_qkv seen(const dt_model_config *config, const dt_llama_block *a)
{
    int64_t D = config->llama.head_width, G = dt_llama_kv_heads(config);

    if (a->keys.data == NULL)
        return views_of(config, a->turned.data != NULL ? &a->turned : &a->qkv, &a->qkv);
    return (dt_qkv){dt_heads_of(&a->qkv, 0, dt_decoder_heads(config), D),
                    dt_heads_of(&a->keys, 0, G, D), dt_heads_of(&a->values, 0, G, D)};
}

/* The last `rows` rows of a tensor (1,rows,columns). */
static dt_tensor newest(const dt_tensor *x, int64_t rows)
{
    unsigned char *data = x->data;

    data += (size_t)((x->dim[1] - rows) * x->dim[2]) * dt_dtype_bytes(x->dtype);
    return dt_tensor_3d(data, x->dtype, 1, rows, x->dim[2]);
}

/* q, k and v as one layer. */
static dt_linear qkv(const dt_block_call *c)
{
    return dt_linear_of(c, DT_LLAMA_Q_W, DT_LLAMA_V_W, DT_LLAMA_Q_B, DT_LLAMA_V_B, DT_LINEAR_ROWS);
}

static dt_linear out_proj(const dt_block_call *c)
{
    return dt_linear_of(c, DT_LLAMA_O_W, DT_LLAMA_O_W, DT_LLAMA_O_B, DT_LLAMA_O_B,
                        DT_LINEAR_COLUMNS);
}

/* norm_1 (B,T,C) -> q k v: one product, or three if keys and values go directly into the cache. */
static dt_status make_qkv(const dt_block_call *c, dt_llama_block *a, dt_error *err)
{
    dt_linear all = qkv(c);
    dt_linear q = dt_linear_of(c, DT_LLAMA_Q_W, DT_LLAMA_Q_W, DT_LLAMA_Q_B, DT_LLAMA_Q_B, all.cut);
    dt_linear k = dt_linear_of(c, DT_LLAMA_K_W, DT_LLAMA_K_W, DT_LLAMA_K_B, DT_LLAMA_K_B, all.cut);
    dt_linear v = dt_linear_of(c, DT_LLAMA_V_W, DT_LLAMA_V_W, DT_LLAMA_V_B, DT_LLAMA_V_B, all.cut);
    dt_tensor keys, values;
    dt_status st = DT_OK;

    if (a->keys.data == NULL)
        return dt_linear_forward(c->model, &all, &a->qkv, &a->norm_1, err);
    keys = newest(&a->keys, a->qkv.dim[1]);
    values = newest(&a->values, a->qkv.dim[1]);
    DT_TRY(dt_linear_forward(c->model, &q, &a->qkv, &a->norm_1, err));
    DT_TRY(dt_linear_forward(c->model, &k, &keys, &a->norm_1, err));
    DT_TRY(dt_linear_forward(c->model, &v, &values, &a->norm_1, err));
out:
    return st;
}

/* Views the single row of each sequence as the rows of one sequence. */
static dt_heads rows_of_one(dt_heads h)
{
    h.rows = h.batch;
    h.row_stride = h.sequence_stride;
    h.batch = 1;
    return h;
}

/* Norm queries and keys, if the model does that, and rotate them. */
static dt_status turn(const dt_block_call *c, dt_llama_block *a, dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    const dt_model_config *config = &model->config;
    dt_tensor angles = dt_llama_angles(model->state);
    dt_qkv from = made(config, a), to = seen(config, a);
    dt_status st = DT_OK;

    if (((const dt_decoder *)model->state)->growth.each) {
        from.q = to.q = rows_of_one(from.q);
        from.k = to.k = rows_of_one(from.k);
    }
    to.k = dt_heads_last(to.k, from.k.rows);
    DT_TRY(device->ops->rotary_forward(device, &to.q, &a->q_rstd, &from.q, &c->w[DT_LLAMA_Q_NORM],
                                       &angles, config->llama.norm_eps, err));
    DT_TRY(device->ops->rotary_forward(device, &to.k, &a->k_rstd, &from.k, &c->w[DT_LLAMA_K_NORM],
                                       &angles, config->llama.norm_eps, err));
out:
    return st;
}

/* Append the rotated keys and the values of each sequence to the cache, and view the cache for
 * attention. */
static dt_status keep_each(dt_qkv *views, const dt_block_call *c, const dt_llama_block *a,
                           dt_error *err)
{
    dt_model *model = c->model;
    int layer = c->layer;
    const dt_model_config *config = &model->config;
    int64_t A = dt_llama_q_width(config), D = config->llama.head_width,
            G = dt_llama_kv_heads(config);
    dt_status st = DT_OK;

    DT_TRY(dt_decoder_keep(model, DT_LLAMA_KEPT_KEYS, layer, &a->qkv, A, err));
    DT_TRY(dt_decoder_keep(model, DT_LLAMA_KEPT_VALUES, layer, &a->qkv,
                           A + dt_llama_kv_width(config), err));
    views->k = dt_decoder_kept_heads(model, DT_LLAMA_KEPT_KEYS, layer, 0, G, D);
    views->v = dt_decoder_kept_heads(model, DT_LLAMA_KEPT_VALUES, layer, 0, G, D);
out:
    return st;
}

static dt_status norm_1(const dt_block_call *c, dt_llama_block *a, const dt_tensor *x,
                        dt_error *err)
{
    return c->model->device->ops->rmsnorm_forward(c->model->device, &a->norm_1, &a->norm_1_rstd, x,
                                                  &c->w[DT_LLAMA_NORM_1],
                                                  c->model->config.llama.norm_eps, err);
}

/* Computes the block's mid. */
static dt_status llama_attention_forward(const dt_block_call *c, const dt_tensor *x, dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    dt_llama_block *a = dt_llama_block_of(model, c->layer);
    dt_linear proj = out_proj(c);
    dt_philox_key key = {0};
    dt_attention_args args = dt_decoder_attention_args(c, &key);
    dt_status st = DT_OK;
    dt_qkv views;

    /* x (B,T,C) -> norm_1 (B,T,C) -> qkv (B,T,Q) -> att (B,T,A) -> mid (B,T,C) */
    DT_TRY(norm_1(c, a, x, err));
    DT_TRY(make_qkv(c, a, err));
    DT_TRY(turn(c, a, err));
    views = seen(&model->config, a);
    if (((const dt_decoder *)model->state)->growth.each)
        DT_TRY(keep_each(&views, c, a, err));
    DT_TRY(device->ops->attention_forward(device, &a->att, &a->lse, &views, &args, err));
    DT_TRY(dt_decoder_project(c, &proj, &a->mid, x, &a->att, DT_PHILOX_DROPOUT_RESIDUAL, err));
out:
    return st;
}

/* Convert the gradients of queries and keys, as attention reads them, to those of the product's
 * output. */
static dt_status turn_back(const dt_block_call *c, const dt_llama_block *a, const dt_qkv *dqkv,
                           dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    dt_tensor angles = dt_llama_angles(model->state);
    dt_qkv from = made(&model->config, a);
    dt_status st = DT_OK;

    DT_TRY(device->ops->rotary_backward(device, &dqkv->q, &c->dw[DT_LLAMA_Q_NORM], &dqkv->q,
                                        &from.q, &a->q_rstd, &c->w[DT_LLAMA_Q_NORM], &angles, err));
    DT_TRY(device->ops->rotary_backward(device, &dqkv->k, &c->dw[DT_LLAMA_K_NORM], &dqkv->k,
                                        &from.k, &a->k_rstd, &c->w[DT_LLAMA_K_NORM], &angles, err));
out:
    return st;
}

/* Turns state->dstream from the gradient of mid into the gradient of x. dstream (B,T,C) -> dproj (B,T,C) ->
 * datt (B,T,A) -> dqkv (B,T,Q) -> dnorm_1 (B,T,C), added to dstream */
static dt_status llama_attention_backward(const dt_block_call *c, const dt_tensor *x, dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    const dt_model_config *config = &model->config;
    dt_decoder *state = model->state;
    dt_llama_block *a = dt_llama_block_of(model, c->layer);
    dt_linear all = qkv(c), proj = out_proj(c);
    dt_tensor datt = state->dnarrow, dqkv = state->wide, dproj;
    dt_philox_key key = {0};
    dt_attention_args args = dt_decoder_attention_args(c, &key);
    dt_qkv views = seen(config, a), dviews;
    dt_status st = DT_OK;

    datt.dim[2] = dt_llama_q_width(config);
    dqkv.dim[2] = dt_llama_qkv_width(config);
    dviews = views_of(config, &dqkv, &dqkv);
    DT_TRY(dt_decoder_project_grad(c, &dproj, DT_PHILOX_DROPOUT_RESIDUAL, err));
    DT_TRY(dt_linear_backward(model, &proj, &datt, &dproj, &a->att, err));
    if (config->recompute == DT_RECOMPUTE_SELECTIVE && config->llama.qk_norm)
        /* a later block has overwritten the rotated queries and keys */
        DT_TRY(turn(c, a, err));
    DT_TRY(ops->attention_backward(device, &dviews, &datt, &views, &a->att, &a->lse, &args, err));
    DT_TRY(turn_back(c, a, &dviews, err));
    if (config->recompute != DT_RECOMPUTE_NONE) /* into dnarrow */
        DT_TRY(norm_1(c, a, x, err));
    DT_TRY(dt_linear_backward(model, &all, &state->dnarrow, &dqkv, &a->norm_1, err));
    DT_TRY(ops->rmsnorm_backward(device, &state->dstream, &c->dw[DT_LLAMA_NORM_1], &state->dnarrow,
                                 x, &a->norm_1_rstd, &c->w[DT_LLAMA_NORM_1], err));
out:
    return st;
}

static dt_linear gate_up(const dt_block_call *c)
{
    return dt_linear_of(c, DT_LLAMA_GATE_W, DT_LLAMA_UP_W, DT_LLAMA_GATE_B, DT_LLAMA_UP_B,
                        DT_LINEAR_ROWS);
}

static dt_linear down(const dt_block_call *c)
{
    return dt_linear_of(c, DT_LLAMA_DOWN_W, DT_LLAMA_DOWN_W, DT_LLAMA_DOWN_B, DT_LLAMA_DOWN_B,
                        DT_LINEAR_COLUMNS);
}

static dt_status norm_2(const dt_block_call *c, dt_llama_block *a, dt_error *err)
{
    return c->model->device->ops->rmsnorm_forward(c->model->device, &a->norm_2, &a->norm_2_rstd,
                                                  &a->mid, &c->w[DT_LLAMA_NORM_2],
                                                  c->model->config.llama.norm_eps, err);
}

/* Computes every product that backward reads. */
dt_status dt_llama_block_products(const dt_block_call *c, const dt_tensor *x, dt_error *err)
{
    dt_llama_block *a = dt_llama_block_of(c->model, c->layer);
    dt_linear layer = gate_up(c);
    dt_status st = DT_OK;

    DT_TRY(llama_attention_forward(c, x, err));
    /* mid (B,T,C) -> norm_2 (B,T,C) -> gate_up (B,T,2F) */
    DT_TRY(norm_2(c, a, err));
    DT_TRY(dt_linear_forward(c->model, &layer, &a->gate_up, &a->norm_2, err));
out:
    return st;
}

dt_status dt_llama_block_forward(const dt_block_call *c, dt_tensor *y, const dt_tensor *x,
                                 dt_error *err)
{
    dt_device *device = c->model->device;
    dt_llama_block *a = dt_llama_block_of(c->model, c->layer);
    dt_linear layer = down(c);
    dt_status st = DT_OK;

    DT_TRY(dt_llama_block_products(c, x, err));
    /* gate_up (B,T,2F) -> act (B,T,F) -> out (B,T,C) */
    DT_TRY(device->ops->swiglu_forward(device, &a->act, &a->gate_up, err));
    DT_TRY(dt_decoder_project(c, &layer, y, &a->mid, &a->act, DT_PHILOX_DROPOUT_MLP, err));
out:
    return st;
}

/* out = mid + dropout(down(silu(gate) up)), gate and up of norm_2(mid):
 * dstream (B,T,C) -> dproj (B,T,C) -> dact (B,T,F), overwrites act -> dgate_up (B,T,2F), overwrites
 * gate_up -> dnorm_2 (B,T,C), added to dstream */
static dt_status mlp_backward(const dt_block_call *c, dt_error *err)
{
    dt_model *model = c->model;
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    dt_decoder *state = model->state;
    dt_llama_block *a = dt_llama_block_of(model, c->layer);
    dt_linear up = gate_up(c), layer = down(c);
    dt_tensor dproj;
    dt_status st = DT_OK;

    DT_TRY(dt_decoder_project_grad(c, &dproj, DT_PHILOX_DROPOUT_MLP, err));
    DT_TRY(ops->swiglu_forward(device, &a->act, &a->gate_up, err));
    DT_TRY(dt_linear_backward(model, &layer, &a->act, &dproj, &a->act, err));
    DT_TRY(ops->swiglu_backward(device, &a->gate_up, &a->act, &a->gate_up, err));
    if (model->config.recompute != DT_RECOMPUTE_NONE) /* into dnarrow */
        DT_TRY(norm_2(c, a, err));
    DT_TRY(dt_linear_backward(model, &up, &state->dnarrow, &a->gate_up, &a->norm_2, err));
    DT_TRY(ops->rmsnorm_backward(device, &state->dstream, &c->dw[DT_LLAMA_NORM_2], &state->dnarrow,
                                 &a->mid, &a->norm_2_rstd, &c->w[DT_LLAMA_NORM_2], err));
out:
    return st;
}

dt_status dt_llama_block_backward(const dt_block_call *c, const dt_tensor *x, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(mlp_backward(c, err));
    DT_TRY(llama_attention_backward(c, x, err));
out:
    return st;
}
