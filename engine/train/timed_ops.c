/* timed_ops: times the matrix products and attention of a device whose ops return when they are done, and counts
 * their operations. The other ops need no entry: their time is what remains of a pass (engine/stopwatch.h). */
#include "engine/stopwatch.h"
#include "engine/train/session.h"

static const dt_ops *inner(const dt_device *device)
{
    return ((const dt_timed_ops *)(const void *)device->ops)->inner;
}

/* Run an op as `part`. Only CPU ops are timed, so it is done when it returns. */
#define TIMED(part, flops, call)                \
    do {                                        \
        int previous = dt_stopwatch_part(part); \
        dt_status st = inner(device)->call;     \
                                                \
        dt_stopwatch_flops(part, flops);        \
        dt_stopwatch_part(previous);            \
        return st;                              \
    } while (0)

static double product_flops(const dt_tensor *rows, int64_t width)
{
    return 2.0 * (double)dt_tensor_elems(rows) * (double)width;
}

static dt_status matmul_forward(dt_device *device, dt_tensor *y, const dt_tensor *x,
                                const dt_tensor *w, const dt_tensor *bias, dt_error *err)
{
    TIMED(DT_PART_PRODUCTS, product_flops(y, w->dim[1]),
          matmul_forward(device, y, x, w, bias, err));
}

static dt_status matmul_backward_input(dt_device *device, dt_tensor *dx, const dt_tensor *dy,
                                       const dt_tensor *w, dt_error *err)
{
    TIMED(DT_PART_PRODUCTS, product_flops(dy, w->dim[1]),
          matmul_backward_input(device, dx, dy, w, err));
}

static dt_status matmul_backward_weight(dt_device *device, dt_tensor *dw, dt_tensor *dbias,
                                        const dt_tensor *dy, const dt_tensor *x, dt_error *err)
{
    int64_t width = dw != NULL && dw->data != NULL ? x->dim[x->ndim - 1] : 0;

    TIMED(DT_PART_PRODUCTS, product_flops(dy, width),
          matmul_backward_weight(device, dw, dbias, dy, x, err));
}

/* Operations of the two products of a forward pass. A causal mask leaves half of them. */
static double attention_flops(const dt_qkv *x, const dt_attention_args *args)
{
    double pairs = (double)x->q.rows * (double)x->k.rows;

    if (args->mask == DT_MASK_CAUSAL || args->mask == DT_MASK_SEGMENTS)
        pairs /= 2;
    return 4.0 * pairs * (double)(x->q.batch * x->q.heads * x->q.width);
}

static dt_status attention_forward(dt_device *device, dt_tensor *out, dt_tensor *lse,
                                   const dt_qkv *x, const dt_attention_args *args, dt_error *err)
{
    TIMED(DT_PART_ATTENTION, attention_flops(x, args),
          attention_forward(device, out, lse, x, args, err));
}

/* Backward has five products where forward has two. */
static dt_status attention_backward(dt_device *device, const dt_qkv *dx, const dt_tensor *dout,
                                    const dt_qkv *x, const dt_tensor *out, const dt_tensor *lse,
                                    const dt_attention_args *args, dt_error *err)
{
    TIMED(DT_PART_ATTENTION, 2.5 * attention_flops(x, args),
          attention_backward(device, dx, dout, x, out, lse, args, err));
}

void dt_timed_ops_install(dt_timed_ops *timed, dt_device *device)
{
    if (!device->host_reads)
        return;
    timed->inner = device->ops;
    timed->ops = *device->ops;
    timed->ops.matmul_forward = matmul_forward;
    timed->ops.matmul_backward_input = matmul_backward_input;
    timed->ops.matmul_backward_weight = matmul_backward_weight;
    timed->ops.attention_forward = attention_forward;
    timed->ops.attention_backward = attention_backward;
    device->ops = &timed->ops;
}
