#include "engine/data/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/data/rows_int.h"

void dt_rows_init(dt_rows *out, const dt_recipe *recipe)
{
    *out = (dt_rows){.inputs = recipe->model.inputs,
                     .outputs = recipe->model.outputs,
                     .classes = recipe->model.loss == DT_LOSS_CROSS_ENTROPY};
}

void dt_rows_release(dt_rows *rows)
{
    free(rows->values);
    free(rows->class_ids);
    free(rows->numbers);
    memset(rows, 0, sizeof(*rows));
}

/* --- used by the readers of both formats */

static int64_t target_columns(const dt_rows *rows)
{
    return rows->classes ? 1 : rows->outputs;
}

int64_t dt_rows_columns(const dt_rows *rows)
{
    return rows->inputs + target_columns(rows);
}

dt_status dt_rows_check_columns(const dt_rows *rows, int64_t columns, dt_error *err)
{
    int64_t expected = dt_rows_columns(rows);

    if (columns == expected)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "%lld columns; expected %lld: %lld of model.inputs and %lld of the target",
                   (long long)columns, (long long)expected, (long long)rows->inputs,
                   (long long)target_columns(rows));
}

static void *grown(void *memory, int64_t rows, int64_t width, bool *failed)
{
    void *more = realloc(memory, (size_t)(rows * width) * sizeof(float));

    *failed |= more == NULL;
    return more != NULL ? more : memory;
}

dt_status dt_rows_reserve(dt_rows *rows, int64_t more, dt_error *err)
{
    int64_t wanted = rows->capacity > 0 ? 2 * rows->capacity : 1024;
    bool failed = false;

    if (rows->count + more <= rows->capacity)
        return DT_OK;
    if (more > 1) /* the row count of a whole file: allocate exactly */
        wanted = rows->count + more;
    rows->values = grown(rows->values, wanted, rows->inputs, &failed);
    if (rows->classes)
        rows->class_ids = grown(rows->class_ids, wanted, 1, &failed);
    else
        rows->numbers = grown(rows->numbers, wanted, rows->outputs, &failed);
    if (failed)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %lld rows", (long long)wanted);
    rows->capacity = wanted;
    return DT_OK;
}

static bool is_class(const dt_rows *rows, double value)
{
    return value >= 0 && value < (double)rows->outputs && value == floor(value);
}

/* Report a number that is invalid in its column. */
static dt_status refuse(const dt_rows *rows, double value, const char *text, dt_error *err)
{
    char digits[32];

    snprintf(digits, sizeof(digits), "%.17g", value);
    if (text == NULL)
        text = digits;
    if (!isfinite((float)value))
        return DT_FAIL(err, DT_ERR_RECIPE, "'%s' is not a number", text);
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "'%s' is not a class: expected an integer from 0 to %lld (model.outputs - 1)",
                   text, (long long)rows->outputs - 1);
}

dt_status dt_rows_put(dt_rows *rows, int64_t column, double value, const char *text, dt_error *err)
{
    int64_t target = column - rows->inputs;
    bool class = target >= 0 && rows->classes;

    if (!isfinite((float)value) || (class && !is_class(rows, value)))
        return refuse(rows, value, text, err);
    if (class)
        rows->class_ids[rows->count] = (int32_t)value;
    else if (target >= 0)
        rows->numbers[rows->count * rows->outputs + target] = (float)value;
    else
        rows->values[rows->count * rows->inputs + column] = (float)value;
    return DT_OK;
}

/* --- files */

static dt_status read_file(dt_rows *rows, const char *path, dt_error *err)
{
    dt_mapping file;
    dt_status st = DT_OK;

    DT_TRY(dt_mapping_open(&file, path, err));
    if (dt_rows_is_npy(path, &file))
        st = dt_rows_read_npy(rows, path, &file, err);
    else
        st = dt_rows_read_csv(rows, path, &file, err);
    dt_mapping_close(&file);
out:
    return st;
}

dt_status dt_rows_read(dt_rows *rows, const dt_data_files *files, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < files->count; i++)
        DT_TRY(read_file(rows, files->items[i].path, err));
out:
    return st;
}

static dt_status count_file(int64_t *count, const dt_rows *rows, const char *path, dt_error *err)
{
    dt_mapping file;
    dt_status st = DT_OK;

    *count = -1;
    DT_TRY(dt_mapping_open(&file, path, err));
    if (dt_rows_is_npy(path, &file))
        st = dt_rows_count_npy(count, rows, path, &file, err);
    dt_mapping_close(&file);
out:
    return st;
}

dt_status dt_rows_count(int64_t *count, const dt_rows *rows, const dt_data_files *files,
                        dt_error *err)
{
    dt_status st = DT_OK;

    *count = 0;
    for (int64_t i = 0; i < files->count; i++) {
        int64_t more;

        DT_TRY(count_file(&more, rows, files->items[i].path, err));
        *count = more < 0 || *count < 0 ? -1 : *count + more;
    }
out:
    return st;
}

/* --- samples */

void dt_rows_copy(void *const inputs[], int64_t at, const dt_rows *rows, int64_t row)
{
    float *values = inputs[0];

    memcpy(values + at * rows->inputs, rows->values + row * rows->inputs,
           (size_t)rows->inputs * sizeof(*values));
    if (rows->classes)
        ((int32_t *)inputs[1])[at] = rows->class_ids[row];
    else
        memcpy((float *)inputs[1] + at * rows->outputs, rows->numbers + row * rows->outputs,
               (size_t)rows->outputs * sizeof(float));
}

void dt_rows_blank(void *const inputs[], int64_t at, const dt_rows *rows)
{
    float *values = inputs[0];

    memset(values + at * rows->inputs, 0, (size_t)rows->inputs * sizeof(*values));
    if (rows->classes)
        ((int32_t *)inputs[1])[at] = -1;
    for (int64_t i = 0; !rows->classes && i < rows->outputs; i++)
        ((float *)inputs[1])[at * rows->outputs + i] = NAN;
}
