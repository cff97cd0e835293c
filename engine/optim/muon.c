/* muon: implements Muon, orthogonalized momentum, for hidden matrices (Jordan et al. 2024; as in
 * torch.optim.Muon), and adamw, with its own learning rate, for all other parameters.
 *
 *   direct   m = m + (1-momentum)*(g - m);  u = m, with nesterov u = m - (1-momentum)*(m - g)
 *   shape    X = u / max(|u|, 1e-7), then five times X = a*X + (b*A + c*A*A)*X with A = X*X^T:
 *            the singular values of X approach 1 (a quintic Newton-Schulz iteration). A matrix
 *            with more rows than columns is iterated from the other side, by X^T*X
 *   apply    p = p - lr*decay*p - lr*ratio*X, ratio = sqrt(max(1, rows/columns)), or, under
 *            adjust_lr match_rms_adamw, 0.2*sqrt(max(rows, columns))
 *
 * The iteration runs in bf16 if the model computes in bf16, as published, else in fp32.
 */
#include <math.h>

#include "engine/optim/optimizer.h"

#define NORM_EPS 1e-7

static const double coefficient_a = 3.4445, coefficient_b = -4.7750, coefficient_c = 2.0315;

/* --- other parameters */

static void factors(dt_optimizer_factors *out, const dt_optimizer_args *args)
{
    dt_optimizer_args rest = *args;

    if (args->options.adamw_lr > 0) /* scaled by the schedule like the matrices' rate */
        rest.lr = args->lr / args->options.lr * args->options.adamw_lr;
    dt_adamw_factors(out, &rest);
}

/* --- matrices, elementwise */

static void matrix_factors(dt_optimizer_factors *out, const dt_optimizer_args *args)
{
    *out = (dt_optimizer_factors){
        .grad_scale = (float)args->grad_scale,
        .decay = (float)(1.0 - args->lr * args->options.weight_decay),
        .lr = (float)args->lr,
        .take_m = (float)(1.0 - args->options.momentum),
        .nesterov = args->options.nesterov,
    };
}

static dt_status direct(dt_device *device, dt_optimizer_part *part, const dt_optimizer_factors *f,
                        dt_error *err)
{
    dt_tensor none = {0};

    return device->ops->optimizer_step(device, DT_RULE_DIRECT, &part->grad, &none, part->state,
                                       &part->grad, f, err);
}

static dt_status apply(dt_device *device, dt_optimizer_part *part, const dt_optimizer_factors *f,
                       dt_error *err)
{
    return dt_optimizer_step_by(DT_RULE_APPLY, device, part, f, err);
}

/* --- matrices, as a whole */

/* Tensors of the iteration; S is the shorter side. */
typedef struct iteration {
    bool tall;       /* the matrix has more rows than columns */
    dt_tensor x, y;  /* (rows, columns): the current X and the next one */
    dt_tensor a, aa; /* (S, S): A and A*A */
    dt_tensor sum;   /* F32 (S, S): A, if it is summed in fp32; else without data */
} iteration;

/* Place the tensors in `work`. */
static void lay_out(iteration *out, int64_t rows, int64_t columns, dt_dtype dtype, void *work)
{
    int64_t side = rows < columns ? rows : columns;
    dt_tensor *const tensors[] = {&out->x, &out->y, &out->a, &out->aa, &out->sum};
    size_t bytes = 0;

    *out = (iteration){.tall = rows > columns,
                       .x = dt_tensor_2d(NULL, dtype, rows, columns),
                       .y = dt_tensor_2d(NULL, dtype, rows, columns),
                       .a = dt_tensor_2d(NULL, dtype, side, side),
                       .aa = dt_tensor_2d(NULL, dtype, side, side),
                       .sum = dt_tensor_2d(NULL, DT_F32, side, side)};
    for (int i = 0; i < (out->tall && dtype != DT_F32 ? 5 : 4); i++) {
        tensors[i]->data = (unsigned char *)work + bytes;
        bytes += (dt_tensor_bytes(tensors[i]) + 63) / 64 * 64;
    }
    DT_ASSERT((int64_t)bytes == dt_newton_schulz.work_bytes(rows, columns, dtype));
}

/* A = X X^T; for a tall matrix X^T X, which is summed in fp32. */
static dt_status square(dt_device *device, iteration *it, dt_error *err)
{
    const dt_ops *ops = device->ops;
    dt_tensor *sum = it->sum.data != NULL ? &it->sum : &it->a;
    dt_status st = DT_OK;

    if (!it->tall)
        return ops->matmul_forward(device, &it->a, &it->x, &it->x, NULL, err);
    DT_TRY(ops->zero(device, sum, err));
    DT_TRY(ops->matmul_backward_weight(device, sum, NULL, &it->x, &it->x, err));
    if (sum != &it->a)
        DT_TRY(ops->cast(device, &it->a, sum, err));
out:
    return st;
}

/* X = scale * (a*X + (b*A + c*A*A)*X). A is symmetric. */
static dt_status iterate(dt_device *device, iteration *it, double scale, dt_error *err)
{
    const dt_ops *ops = device->ops;
    dt_tensor x = it->x;
    dt_status st = DT_OK;

    DT_TRY(square(device, it, err));
    DT_TRY(ops->matmul_forward(device, &it->aa, &it->a, &it->a, NULL, err));
    DT_TRY(ops->blend(device, &it->aa, &it->a, coefficient_b, coefficient_c, err));
    if (it->tall)
        DT_TRY(ops->matmul_forward(device, &it->y, &it->x, &it->aa, NULL, err));
    else
        DT_TRY(ops->matmul_backward_input(device, &it->y, &it->aa, &it->x, err));
    DT_TRY(ops->blend(device, &it->y, &it->x, coefficient_a * scale, scale, err));
    it->x = it->y;
    it->y = x;
out:
    return st;
}

static double ratio_of(const dt_optimizer_options *options, double rows, double columns)
{
    if (options->adjust_lr == DT_ADJUST_LR_MATCH_RMS_ADAMW)
        return 0.2 * sqrt(fmax(rows, columns));
    return sqrt(fmax(1, rows / columns));
}

static dt_status shape(dt_device *device, const dt_optimizer_options *options, dt_tensor *matrix,
                       dt_dtype dtype, void *work, dt_error *err)
{
    double ratio = ratio_of(options, (double)matrix->dim[0], (double)matrix->dim[1]);
    iteration it;
    dt_status st = DT_OK;

    lay_out(&it, matrix->dim[0], matrix->dim[1], dtype, work);
    DT_TRY(device->ops->normalize(device, &it.x, matrix, NORM_EPS, err));
    for (int i = 1; i <= dt_newton_schulz.iterations; i++)
        DT_TRY(iterate(device, &it, i < dt_newton_schulz.iterations ? 1 : ratio, err));
    DT_TRY(device->ops->cast(device, matrix, &it.x, err));
out:
    return st;
}

static const dt_optimizer_matrices matrices = {
    .factors = matrix_factors, .direct = direct, .shape = shape, .apply = apply};

const dt_optimizer dt_optimizer_muon = {
    .factors = factors, .step = dt_adamw_step, .matrices = &matrices};
