/* table: fills dt_ops with the CUDA ops. */
#include "engine/ops/cuda/cuda_int.cuh"

#define ENTRY(op) ops.op = DT_CUDA_NAME(op);

static_assert(DT_OPS_LIST_IS_WHOLE, "ops.h has an op that list.h lacks");

static dt_ops make()
{
    dt_ops ops = {};

    DT_OPS(ENTRY)
    return ops;
}

const dt_ops *dt_cuda_ops()
{
    static const dt_ops ops = make();

    return &ops;
}
