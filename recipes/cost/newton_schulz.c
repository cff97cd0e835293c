/* newton_schulz: computes the cost of orthogonalising a matrix as engine/optim/muon.c does: five iterations
 * over X (rows, columns) with A = X X^T of the shorter side S; L is the longer side. */
#include "recipes/fields/optimizer_table.h"

#include "recipes/architecture/architecture.h"

#define STEPS 5

/* Returns bf16 if the model computes in bf16, as in the published method, else fp32. */
static dt_dtype dtype_of(dt_dtype of_model)
{
    return of_model == DT_BF16 ? DT_BF16 : DT_F32;
}

static int64_t line(int64_t elems, dt_dtype dtype)
{
    int64_t bytes = dt_size_times(elems, (int64_t)dt_dtype_bytes(dtype));

    return dt_size_plus(bytes, 63) / 64 * 64;
}

/* Returns the bytes of X and the next X, A and A^2; for a tall matrix also of A in fp32, in which it is summed. */
static int64_t work_bytes(int64_t rows, int64_t columns, dt_dtype dtype)
{
    int64_t side = rows < columns ? rows : columns;
    int64_t whole = dt_size_times(rows, columns), square = dt_size_times(side, side);
    int64_t bytes = dt_size_times(2, dt_size_plus(line(whole, dtype), line(square, dtype)));

    return rows > columns && dtype != DT_F32 ? dt_size_plus(bytes, line(square, DT_F32)) : bytes;
}

/* Returns the FLOPs: X X^T and its product with X are 2 S^2 L each, A A is 2 S^3. */
static double flops(int64_t rows, int64_t columns)
{
    double side = (double)(rows < columns ? rows : columns);
    double length = (double)(rows < columns ? columns : rows);

    return STEPS * (4 * side * side * length + 2 * side * side * side);
}

const dt_whole_matrices dt_newton_schulz = {
    .iterations = STEPS, .dtype = dtype_of, .work_bytes = work_bytes, .flops = flops};
