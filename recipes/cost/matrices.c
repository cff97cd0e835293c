/* matrices: computes the cost of whole-matrix updates, and the rank that owns each matrix. */
#include "recipes/cost/matrices.h"

#include "recipes/architecture/architecture.h"
#include "recipes/cost/traffic.h"
#include "recipes/fields/optimizer_table.h"

/* --- the cost of orthogonalising a matrix as engine/optim/muon.c does: five iterations over X (rows,
 * columns) with A = X X^T of the shorter side S; L is the longer side */

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

/* --- all hidden matrices, and their owners */

static const dt_whole_matrices *whole_of(const dt_recipe *recipe)
{
    return dt_optimizers[recipe->optimizer.kind].whole_matrices;
}

typedef struct sum {
    const dt_whole_matrices *whole;
    dt_dtype dtype;
    dt_matrices *out;
} sum;

static void add(void *self, const dt_param *matrix)
{
    const sum *of = self;
    int64_t bytes = of->whole->work_bytes(matrix->dim[0], matrix->dim[1], of->dtype);

    of->out->elems = dt_size_plus(of->out->elems, matrix->elems);
    of->out->flops += of->whole->flops(matrix->dim[0], matrix->dim[1]);
    if (bytes > of->out->work_bytes)
        of->out->work_bytes = bytes;
}

void dt_matrices_count(dt_matrices *out, const dt_recipe *recipe)
{
    const dt_whole_matrices *whole = whole_of(recipe);
    sum of = {.whole = whole, .out = out};
    dt_model_config config;

    *out = (dt_matrices){0};
    if (whole == NULL)
        return;
    dt_model_config_make(&config, recipe, 0);
    of.dtype = whole->dtype(config.dtype);
    dt_model_each_matrix(&config, add, &of);
}

/* --- among ranks */

int64_t dt_matrix_owner(double before, double flops, double all, int64_t world_size)
{
    int64_t owner = (int64_t)((before + flops / 2) / all * (double)world_size);

    return owner < world_size ? owner : world_size - 1;
}

static double flops_of(const dt_whole_matrices *whole, const dt_param *param)
{
    return dt_param_is_matrix(param) ? whole->flops(param->dim[0], param->dim[1]) : 0;
}

/* ddp: each rank's matrices are contiguous. */
static double most_of_divided(const dt_param_table *table, const dt_whole_matrices *whole,
                              double all, int64_t world_size)
{
    double before = 0, mine = 0, most = 0;
    int64_t last = -1;

    for (int i = 0; i < table->param_count; i++) {
        double flops = flops_of(whole, &table->params[i]);
        int64_t owner;

        if (flops == 0)
            continue;
        owner = dt_matrix_owner(before, flops, all, world_size);
        mine = owner == last ? mine + flops : flops;
        last = owner;
        before += flops;
        most = mine > most ? mine : most;
    }
    return most;
}

/* Returns the FLOPs of the unit's matrices of which the rank holds a part. */
static double flops_of_rank(const dt_param_table *table, const dt_unit *unit,
                            const dt_whole_matrices *whole, int64_t part, int64_t rank)
{
    double flops = 0;

    for (int i = unit->first_param; i < unit->first_param + unit->param_count; i++) {
        const dt_param *param = &table->params[i];

        if (param->offset_elems < (rank + 1) * part &&
            param->offset_elems + param->held.elems > rank * part)
            flops += flops_of(whole, param);
    }
    return flops;
}

/* fsdp: a rank with more than one matrix has the beginning or the end of one. Units of equal shape are
 * divided equally, so that the same rank has the most of each. */
static double most_of_parts(const dt_param_table *table, const dt_whole_matrices *whole,
                            int64_t world_size)
{
    double sum_of_units = 0;

    for (int u = 1; u < table->unit_count; u++) {
        const dt_unit *unit = &table->units[u];
        int64_t part = dt_fsdp_part_elems(unit->elems, world_size);
        double most = 0;

        for (int i = unit->first_param; i < unit->first_param + unit->param_count; i++) {
            const dt_param *param = &table->params[i];
            int64_t ends[] = {param->offset_elems / part,
                              (param->offset_elems + param->held.elems - 1) / part};

            for (int k = 0; dt_param_is_matrix(param) && k < 2; k++) {
                double flops = flops_of_rank(table, unit, whole, part, ends[k]);

                most = flops > most ? flops : most;
            }
        }
        sum_of_units += most;
    }
    return sum_of_units;
}

double dt_matrices_rank_flops(const dt_recipe *recipe, int64_t world_size, dt_arena *arena)
{
    const dt_whole_matrices *whole = whole_of(recipe);
    dt_model_config config;
    dt_param_table table;
    dt_matrices all;

    dt_matrices_count(&all, recipe);
    if (whole == NULL || world_size == 1)
        return all.flops;
    dt_model_config_make(&config, recipe, 0);
    dt_param_table_make(&table, &config, arena);
    if (recipe->strategy.kind == DT_STRATEGY_DDP)
        return most_of_divided(&table, whole, all.flops, world_size);
    if (recipe->strategy.kind == DT_STRATEGY_FSDP)
        return most_of_parts(&table, whole, world_size);
    return all.flops;
}
