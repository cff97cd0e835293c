/* matmul: computes products of row-major tensors with product.cuh, whose matrices are column-major: each
 * tensor is passed as its transpose.
 *
 *   forward          y^T (O,N)  = w^T' x^T      A = w (I,O) transposed, B = x (I,N); bias epilogue
 *   backward input   dx^T (I,N) = w^T dy^T      A = w (I,O),            B = dy (O,N)
 *   backward weight  dw^T (I,O) += x^T dy       A = x (I,N),            B = dy (O,N) transposed;
 *                                               dbias by an epilogue that sums B over N
 *   forward onto a   y^T (O,N)  = a^T + w^T' x^T, as forward with C = a
 * The GELU epilogues compute the tanh approximation, from the fp32 sums before they are rounded for storage.
 * If the library has no kernel for a shape, two separate ops are run.
 */
#include "engine/ops/cuda/columns.cuh"
#include "engine/ops/cuda/product.cuh"

static dt_cuda_product forward_of(const dt_tensor *y, const dt_tensor *x, const dt_tensor *w,
                                  const dt_tensor *bias)
{
    dt_cuda_product p = {};

    DT_ASSERT(x->dtype == w->dtype && dt_tensor_rows(w) == dt_tensor_cols(y) &&
              dt_tensor_cols(w) == dt_tensor_cols(x) && dt_tensor_rows(y) == dt_tensor_rows(x));
    p.m = dt_tensor_cols(y);
    p.n = dt_tensor_rows(x);
    p.k = dt_tensor_cols(x);
    p.transpose_a = true;
    p.a = w->data;
    p.b = x->data;
    p.d = y->data;
    p.in = x->dtype;
    p.out = y->dtype;
    p.bias = bias != NULL ? bias->data : NULL;
    p.epilogue = p.bias != NULL ? DT_CUDA_BIAS : DT_CUDA_PLAIN;
    return p;
}

static dt_cuda_product backward_input_of(const dt_tensor *dx, const dt_tensor *dy,
                                         const dt_tensor *w)
{
    dt_cuda_product p = {};

    DT_ASSERT(dy->dtype == w->dtype && dt_tensor_rows(w) == dt_tensor_cols(dy) &&
              dt_tensor_cols(w) == dt_tensor_cols(dx) && dt_tensor_rows(dx) == dt_tensor_rows(dy));
    p.m = dt_tensor_cols(dx);
    p.n = dt_tensor_rows(dy);
    p.k = dt_tensor_cols(dy);
    p.a = w->data;
    p.b = dy->data;
    p.d = dx->data;
    p.in = dy->dtype;
    p.out = dx->dtype;
    return p;
}

/* --- adding the bias in a kernel of its own, if the product cannot: a 16-bit bias to an fp32
 * result */

template <typename Y, typename B>
__global__ void add_to_rows(Y *y, const B *bias, int64_t elems, int64_t out)
{
    int64_t stride = (int64_t)gridDim.x * blockDim.x;

    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < elems; i += stride)
        y[i] = dt_from_float<Y>(dt_to_float(y[i]) + dt_to_float(bias[i % out]));
}

template <typename Y>
static dt_status add_bias(dt_cuda_state *state, dt_tensor *y, const dt_tensor *bias, dt_error *err)
{
    int64_t elems = dt_tensor_elems(y);

    DT_CUDA_DISPATCH(bias->dtype, "matmul", err, {
        DT_CUDA_LAUNCH((add_to_rows<Y, T>), dt_cuda_blocks(state, elems, DT_CUDA_BLOCK),
                       DT_CUDA_BLOCK, 0, state->stream, (Y *)y->data, (const T *)bias->data, elems,
                       dt_tensor_cols(y));
    });
    return dt_cuda_launched("matmul", err);
}

dt_status dt_cuda_matmul_forward(dt_device *device, dt_tensor *y, const dt_tensor *x,
                                 const dt_tensor *w, const dt_tensor *bias, dt_error *err)
{
    dt_cuda_product p = forward_of(y, x, w, bias);
    bool done = p.n == 0;
    dt_status st = DT_OK;

    if (!done && p.bias != NULL)
        DT_TRY(dt_cuda_product_try(device, &p, &done, err));
    if (!done) {
        p.epilogue = DT_CUDA_PLAIN;
        DT_TRY(dt_cuda_product_run(device, &p, err));
        if (p.bias != NULL)
            DT_CUDA_DISPATCH(y->dtype, "matmul", err,
                             { DT_TRY(add_bias<T>(dt_cuda_of(device), y, bias, err)); });
    }
out:
    return st;
}

dt_status dt_cuda_matmul_backward_input(dt_device *device, dt_tensor *dx, const dt_tensor *dy,
                                        const dt_tensor *w, dt_error *err)
{
    dt_cuda_product p = backward_input_of(dx, dy, w);

    return p.n == 0 ? DT_OK : dt_cuda_product_run(device, &p, err);
}

/* Runs the fused product if the library has a kernel for it that is faster than the separate ops;
 * the choice is the same each time for a shape. Neither way overwrites its inputs, so both can be
 * run repeatedly. */
static dt_status run_fused_or_split(dt_device *device, const dt_cuda_product *p, bool suits,
                                    dt_cuda_work *fused, dt_cuda_work *split, void *call,
                                    dt_error *err)
{
    dt_cuda_way way = suits ? dt_cuda_product_way(device, p) : DT_CUDA_SPLIT;
    bool done = false;
    dt_status st = DT_OK;

    if (way != DT_CUDA_SPLIT)
        DT_TRY(dt_cuda_product_try(device, p, &done, err));
    if (done && way == DT_CUDA_NOT_COMPARED)
        done = dt_cuda_product_compare(device, p, fused, split, call) == DT_CUDA_FUSED &&
               fused(call, NULL) == DT_OK;
    if (!done)
        DT_TRY(split(call, err));
out:
    return st;
}

/* --- with GELU */

/* Returns whether the library's GELU can be used: the rows of aux must be whole vectors. It is not
 * used in fp32, where the slope of cuBLASLt 13.1 is 1.3e-5 off on an H100, and dtrun's 4e-6. */
static bool gelu_suits(const dt_tensor *aux)
{
    return aux->dtype != DT_F32 && dt_tensor_cols(aux) % 8 == 0 && ((uintptr_t)aux->data & 15) == 0;
}

/* The arguments of one call, for both ways. */
struct gelu_call {
    dt_device *device;
    dt_cuda_product p; /* including the epilogue */
    dt_tensor *out;    /* y, or dpre */
    dt_tensor pre;
    const dt_tensor *in, *w, *bias; /* in: x or dy */
};

static dt_status gelu_fused(void *self, dt_error *err)
{
    return dt_cuda_product_run(((gelu_call *)self)->device, &((gelu_call *)self)->p, err);
}

static dt_status gelu_forward_split(void *self, dt_error *err)
{
    gelu_call *c = (gelu_call *)self;
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_matmul_forward(c->device, &c->pre, c->in, c->w, c->bias, err));
    DT_TRY(dt_cuda_activation_forward(c->device, c->out, &c->pre, DT_ACTIVATION_GELU_TANH, err));
out:
    return st;
}

dt_status dt_cuda_matmul_gelu_forward(dt_device *device, dt_tensor *y, dt_tensor *pre,
                                      const dt_tensor *x, const dt_tensor *w, const dt_tensor *bias,
                                      dt_error *err)
{
    gelu_call call = {device, forward_of(y, x, w, bias), y, *pre, x, w, bias};

    DT_ASSERT(dt_tensor_elems(pre) == dt_tensor_elems(y) && pre->dtype == y->dtype);
    call.p.aux = pre->data;
    call.p.epilogue = DT_CUDA_BIAS_GELU;
    if (call.p.n == 0)
        return DT_OK;
    return run_fused_or_split(device, &call.p, call.p.bias != NULL && gelu_suits(pre), gelu_fused,
                              gelu_forward_split, &call, err);
}

static dt_status gelu_backward_split(void *self, dt_error *err)
{
    gelu_call *c = (gelu_call *)self;
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_matmul_backward_input(c->device, c->out, c->in, c->w, err));
    DT_TRY(dt_cuda_activation_backward(c->device, c->out, c->out, &c->pre, DT_ACTIVATION_GELU_TANH,
                                       err));
out:
    return st;
}

dt_status dt_cuda_matmul_gelu_backward(dt_device *device, dt_tensor *dpre, const dt_tensor *dy,
                                       const dt_tensor *w, const dt_tensor *pre, dt_error *err)
{
    gelu_call call = {device, backward_input_of(dpre, dy, w), dpre, *pre, dy, w, NULL};

    DT_ASSERT(dt_tensor_elems(pre) == dt_tensor_elems(dpre) && pre->dtype == dpre->dtype);
    call.p.aux = pre->data; /* only read by the library in this case */
    call.p.epilogue = DT_CUDA_GELU_SLOPE;
    return call.p.n == 0 ? DT_OK
                         : run_fused_or_split(device, &call.p, gelu_suits(pre), gelu_fused,
                                              gelu_backward_split, &call, err);
}

/* --- with a residual */

/* The arguments of one call, for both ways. */
struct residual_call {
    dt_device *device;
    dt_cuda_product p; /* including C */
    dt_tensor *y;
    const dt_tensor *a, *x, *w, *bias;
};

static dt_status residual_fused(void *self, dt_error *err)
{
    return dt_cuda_product_run(((residual_call *)self)->device, &((residual_call *)self)->p, err);
}

static dt_status residual_split(void *self, dt_error *err)
{
    residual_call *c = (residual_call *)self;
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_matmul_forward(c->device, c->y, c->x, c->w, c->bias, err));
    DT_TRY(dt_cuda_residual_forward(c->device, c->y, c->a, c->y, err));
out:
    return st;
}

dt_status dt_cuda_matmul_residual_forward(dt_device *device, dt_tensor *y, const dt_tensor *a,
                                          const dt_tensor *x, const dt_tensor *w,
                                          const dt_tensor *bias, dt_error *err)
{
    residual_call call = {device, forward_of(y, x, w, bias), y, a, x, w, bias};

    DT_ASSERT(a->data != y->data && a->dtype == y->dtype &&
              dt_tensor_elems(a) == dt_tensor_elems(y));
    call.p.c = a->data;
    call.p.beta = 1.0f;
    return call.p.n == 0 ? DT_OK
                         : run_fused_or_split(device, &call.p, true, residual_fused, residual_split,
                                              &call, err);
}

/* --- the gradient of the bias: column sums */

static dt_status bias_gradient(dt_device *device, dt_tensor *dbias, const dt_tensor *dy,
                               dt_error *err)
{
    int64_t n = dt_tensor_rows(dy), out = dt_tensor_cols(dy);
    const dt_columns_rows rows = {dy->data, 1, n, out, n * out, out};

    return dt_columns_sum(device, (float *)dbias->data, rows, dy->dtype, "matmul", err);
}

/* The arguments of one call, for both ways. */
struct weight_call {
    dt_device *device;
    dt_cuda_product p;
    dt_tensor dbias;
    const dt_tensor *dy;
};

/* Computes dw, and dbias from the sums of dy that the product itself leaves in scratch. Sets *done
 * to false if the library cannot do this. */
static dt_status multiply_and_sum(weight_call *call, bool *done, dt_error *err)
{
    dt_cuda_product p = call->p;
    dt_status st = DT_OK;
    void *scratch;

    DT_TRY(dt_cuda_scratch(&scratch, call->device, (size_t)p.n * sizeof(float), err));
    p.epilogue = DT_CUDA_SUM_B;
    p.sum = (float *)scratch;
    DT_TRY(dt_cuda_product_try(call->device, &p, done, err));
    if (*done)
        DT_TRY(dt_columns_add(dt_cuda_of(call->device), {{(float *)call->dbias.data}}, p.sum, 1,
                              p.n, p.n, "matmul", err));
out:
    return st;
}

static dt_status weight_fused(void *self, dt_error *err)
{
    dt_status st = DT_OK;
    bool done;

    DT_TRY(multiply_and_sum((weight_call *)self, &done, err));
    if (!done)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "matmul: no such kernel");
out:
    return st;
}

static dt_status weight_split(void *self, dt_error *err)
{
    weight_call *call = (weight_call *)self;
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_product_run(call->device, &call->p, err));
    DT_TRY(bias_gradient(call->device, &call->dbias, call->dy, err));
out:
    return st;
}

/* Measures both ways on temporary memory, because they add to their results. Without enough memory,
 * returns FUSED and measures nothing. */
static dt_cuda_way compare_weight(const weight_call *call, const dt_cuda_product *fused)
{
    size_t elems = (size_t)call->p.m * (size_t)call->p.n;
    weight_call trial = *call;
    dt_cuda_way way;
    float *copy;

    if (cudaMalloc(&copy, (elems + (size_t)call->p.n) * sizeof(float)) != cudaSuccess) {
        (void)cudaGetLastError();
        return DT_CUDA_FUSED;
    }
    trial.p.d = copy;
    trial.dbias.data = copy + elems;
    way = dt_cuda_product_compare(call->device, fused, weight_fused, weight_split, &trial);
    cudaFree(copy);
    return way;
}

static dt_status run_with_sums(weight_call *call, dt_error *err)
{
    dt_cuda_product fused = call->p;
    dt_status st = DT_OK;
    bool done = false;
    dt_cuda_way way;

    fused.epilogue = DT_CUDA_SUM_B;
    way = dt_cuda_product_way(call->device, &fused);
    if (way == DT_CUDA_NOT_COMPARED)
        way = compare_weight(call, &fused);
    if (way != DT_CUDA_SPLIT)
        DT_TRY(multiply_and_sum(call, &done, err));
    if (!done)
        DT_TRY(weight_split(call, err));
out:
    return st;
}

static dt_status backward_weight(dt_device *device, dt_tensor *dw, dt_tensor *dbias,
                                 const dt_tensor *dy, const dt_tensor *x, bool adds, dt_error *err)
{
    bool sums = dbias != NULL && dbias->data != NULL;
    weight_call call = {};
    dt_cuda_product *p = &call.p;

    DT_ASSERT(dy->dtype == x->dtype && dt_tensor_rows(x) == dt_tensor_rows(dy));
    if (dw == NULL || dw->data == NULL)
        return sums && dt_tensor_rows(dy) > 0 ? bias_gradient(device, dbias, dy, err) : DT_OK;
    DT_ASSERT(dw->dtype == DT_F32 && dt_tensor_rows(dw) == dt_tensor_cols(dy) &&
              dt_tensor_cols(dw) == dt_tensor_cols(x));
    call.device = device;
    call.dy = dy;
    if (sums)
        call.dbias = *dbias;
    p->m = dt_tensor_cols(x);
    p->n = dt_tensor_cols(dy);
    p->k = dt_tensor_rows(dy);
    p->transpose_b = true;
    p->a = x->data;
    p->b = dy->data;
    p->d = dw->data;
    p->in = dy->dtype;
    p->out = DT_F32;
    p->beta = adds ? 1.0f : 0.0f;
    p->epilogue = DT_CUDA_PLAIN;
    if (p->k == 0)
        return adds ? DT_OK : dt_cuda_zero(device, dw, err);
    return sums ? run_with_sums(&call, err) : dt_cuda_product_run(device, p, err);
}

dt_status dt_cuda_matmul_backward_weight(dt_device *device, dt_tensor *dw, dt_tensor *dbias,
                                         const dt_tensor *dy, const dt_tensor *x, dt_error *err)
{
    return backward_weight(device, dw, dbias, dy, x, true, err);
}

dt_status dt_cuda_matmul_first_weight(dt_device *device, dt_tensor *dw, dt_tensor *dbias,
                                      const dt_tensor *dy, const dt_tensor *x, dt_error *err)
{
    return backward_weight(device, dw, dbias, dy, x, false, err);
}
