#include "engine/data/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/data/mapping.h"

#include "base/banned.h"

#define FIELD_SIZE 64 /* no number is longer */
#define BOM        "\xef\xbb\xbf"

/* Where a file is being read. */
typedef struct place {
    const char *path, *at, *end;
    int64_t line;
} place;

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

static int64_t target_columns(const dt_rows *rows)
{
    return rows->classes ? 1 : rows->outputs;
}

/* --- one line */

/* The field that starts at `at`, without spaces around it, as a string; returns its end. One that does
 * not fit, or that holds a zero byte, is shown as far as can be, and as no number. */
static const char *read_field(char out[FIELD_SIZE], const char *at, const char *end)
{
    const char *stop = at, *last;
    size_t length;

    while (stop < end && *stop != ',')
        stop++;
    for (last = stop; last > at && (last[-1] == ' ' || last[-1] == '\t'); last--)
        ;
    while (at < last && (*at == ' ' || *at == '\t'))
        at++;
    length = (size_t)(last - at) < FIELD_SIZE ? (size_t)(last - at) : FIELD_SIZE - 1;
    memcpy(out, at, length);
    out[length] = '\0';
    if (length < (size_t)(last - at))
        memset(out + length - 3, '.', 3);
    for (size_t i = 0; i < length; i++)
        if (out[i] == '\0')
            out[i] = '?';
    return stop;
}

static bool is_number(double *out, const char *field)
{
    char *end;

    *out = strtod(field, &end);
    return end != field && *end == '\0';
}

static dt_status refuse(const place *in, int64_t column, const char *field, const char *expected,
                        dt_error *err)
{
    return DT_FAIL(err, DT_ERR_RECIPE, "'%s', line %lld, column %lld: '%s' is not %s", in->path,
                   (long long)in->line, (long long)column, field, expected);
}

static dt_status store(dt_rows *rows, const place *in, int64_t column, const char *field,
                       dt_error *err)
{
    int64_t target = column - 1 - rows->inputs;
    double value;

    if (!is_number(&value, field) || !isfinite((float)value))
        return refuse(in, column, field, "a number", err);
    if (target < 0) {
        rows->values[rows->count * rows->inputs + column - 1] = (float)value;
    } else if (!rows->classes) {
        rows->numbers[rows->count * rows->outputs + target] = (float)value;
    } else {
        if (value < 0 || value >= (double)rows->outputs || value != floor(value))
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "'%s', line %lld, column %lld: '%s' is no class: expected a whole "
                           "number from 0 to %lld (model.outputs - 1)",
                           in->path, (long long)in->line, (long long)column, field,
                           (long long)rows->outputs - 1);
        rows->class_ids[rows->count] = (int32_t)value;
    }
    return DT_OK;
}

static dt_status read_row(dt_rows *rows, const place *in, const char *end, dt_error *err)
{
    int64_t columns = rows->inputs + target_columns(rows), column = 0;
    const char *at = in->at;
    char field[FIELD_SIZE];
    dt_status st = DT_OK;

    for (;; at++) { /* past a comma */
        at = read_field(field, at, end);
        if (++column <= columns)
            DT_TRY(store(rows, in, column, field, err));
        if (at == end)
            break;
    }
    if (column != columns)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s', line %lld: %lld columns; expected %lld: %lld of model.inputs and %lld of "
                 "the target",
                 in->path, (long long)in->line, (long long)column, (long long)columns,
                 (long long)rows->inputs, (long long)target_columns(rows));
    rows->count++;
out:
    return st;
}

/* --- files */

static void *grown(void *memory, int64_t rows, int64_t width, bool *failed)
{
    void *more = realloc(memory, (size_t)(rows * width) * sizeof(float));

    *failed |= more == NULL;
    return more != NULL ? more : memory;
}

/* Room for one row more. */
static dt_status grow(dt_rows *rows, dt_error *err)
{
    int64_t wanted = rows->capacity > 0 ? 2 * rows->capacity : 1024;
    bool failed = false;

    if (rows->count < rows->capacity)
        return DT_OK;
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

/* Of the line at `in`: its end, without the line break. */
static const char *line_end(const place *in)
{
    const char *end = memchr(in->at, '\n', (size_t)(in->end - in->at));

    if (end == NULL)
        end = in->end;
    return end > in->at && end[-1] == '\r' ? end - 1 : end;
}

static bool is_header(const place *in, const char *end)
{
    char field[FIELD_SIZE];
    double value;

    read_field(field, in->at, end);
    return in->line == 1 && !is_number(&value, field);
}

static dt_status read_file(dt_rows *rows, const char *path, dt_error *err)
{
    dt_mapping mapping;
    place in = {.path = path, .line = 1};
    dt_status st = DT_OK;

    DT_TRY(dt_mapping_open(&mapping, path, err));
    in.at = (const char *)mapping.bytes;
    in.end = in.at + mapping.length;
    if (mapping.length >= strlen(BOM) && memcmp(in.at, BOM, strlen(BOM)) == 0)
        in.at += strlen(BOM); /* else the first row would pass for a header */
    for (; in.at < in.end; in.line++) {
        const char *end = line_end(&in), *next = memchr(in.at, '\n', (size_t)(in.end - in.at));

        if (end > in.at && !is_header(&in, end)) {
            st = grow(rows, err);
            if (st == DT_OK)
                st = read_row(rows, &in, end, err);
            if (st != DT_OK)
                break;
        }
        in.at = next != NULL ? next + 1 : in.end;
    }
    dt_mapping_close(&mapping);
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
