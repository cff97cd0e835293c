/* rows: reads tables of numbers from .csv and .npy files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/data/data_int.h"
#include "engine/data/files.h"
#include "engine/data/npy.h"

/* --- the rows in memory */

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

/* Columns of a row: inputs and target, or targets. */
static int64_t rows_columns(const dt_rows *rows)
{
    return rows->inputs + target_columns(rows);
}

/* DT_ERR_RECIPE if `columns` is not rows_columns. The caller prefixes the position. */
static dt_status rows_check_columns(const dt_rows *rows, int64_t columns, dt_error *err)
{
    int64_t expected = rows_columns(rows);

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

/* Allocate memory for `more` additional rows. */
static dt_status rows_reserve(dt_rows *rows, int64_t more, dt_error *err)
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

/* Store a number in column `column` of the next row, for which memory must be reserved; the caller
 * ends the row by rows->count++. `text`: the number as in the file, for a message; NULL: format it.
 * The caller prefixes the position. */
static dt_status rows_put(dt_rows *rows, int64_t column, double value, const char *text,
                          dt_error *err)
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

/* Append the rows of a file. */
static dt_status rows_read_csv(dt_rows *rows, const char *path, const dt_mapping *file,
                               dt_error *err);
static dt_status rows_read_npy(dt_rows *rows, const char *path, const dt_mapping *file,
                               dt_error *err);
/* Whether the file is .npy, by its first bytes or its name. */
static bool rows_is_npy(const char *path, const dt_mapping *file);

static dt_status read_file(dt_rows *rows, const char *path, dt_error *err)
{
    dt_mapping file;
    dt_status st = DT_OK;

    DT_TRY(dt_mapping_open(&file, path, err));
    if (rows_is_npy(path, &file))
        st = rows_read_npy(rows, path, &file, err);
    else
        st = rows_read_csv(rows, path, &file, err);
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

static dt_status rows_count_npy(int64_t *count, const dt_rows *rows, const char *path,
                                const dt_mapping *file, dt_error *err);

static dt_status count_file(int64_t *count, const dt_rows *rows, const char *path, dt_error *err)
{
    dt_mapping file;
    dt_status st = DT_OK;

    *count = -1;
    DT_TRY(dt_mapping_open(&file, path, err));
    if (rows_is_npy(path, &file))
        st = rows_count_npy(count, rows, path, &file, err);
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

/* --- .csv */

#define FIELD_SIZE 64 /* buffer size of a field; longer than any number */
#define BOM        "\xef\xbb\xbf"

/* Parser position in a .csv file. */
typedef struct place {
    const char *path, *at, *end;
    int64_t line;
} place;

/* --- one line */

/* Copy the field that starts at `at` to a string, without spaces around it; returns its end. A
 * field that is too long or contains a NUL byte is truncated, and does not count as a number. */
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

/* Stores NaN for text that is not a number; rows_put reports both. */
static dt_status store(dt_rows *rows, const place *in, int64_t column, const char *field,
                       dt_error *err)
{
    double value;
    dt_status st;

    st = rows_put(rows, column - 1, is_number(&value, field) ? value : NAN, field, err);
    if (st != DT_OK)
        dt_error_prefix(err, "'%s', line %lld, column %lld", in->path, (long long)in->line,
                        (long long)column);
    return st;
}

static dt_status read_row(dt_rows *rows, const place *in, const char *end, dt_error *err)
{
    int64_t columns = rows_columns(rows), column = 0;
    const char *at = in->at;
    char field[FIELD_SIZE];
    dt_status st = DT_OK;

    for (;; at++) { /* skips a comma */
        at = read_field(field, at, end);
        if (++column <= columns)
            DT_TRY(store(rows, in, column, field, err));
        if (at == end)
            break;
    }
    st = rows_check_columns(rows, column, err);
    if (st != DT_OK)
        dt_error_prefix(err, "'%s', line %lld", in->path, (long long)in->line);
    else
        rows->count++;
out:
    return st;
}

/* End of the line at `in`, without the line break. */
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

static dt_status rows_read_csv(dt_rows *rows, const char *path, const dt_mapping *file,
                               dt_error *err)
{
    place in = {.path = path, .at = (const char *)file->bytes, .line = 1};
    dt_status st = DT_OK;

    in.end = in.at + file->length;
    if (file->length >= strlen(BOM) && memcmp(in.at, BOM, strlen(BOM)) == 0)
        in.at += strlen(BOM); /* otherwise the first row would look like a header */
    for (; in.at < in.end; in.line++) {
        const char *end = line_end(&in), *next = memchr(in.at, '\n', (size_t)(in.end - in.at));

        if (end > in.at && !is_header(&in, end)) {
            DT_TRY(rows_reserve(rows, 1, err));
            DT_TRY(read_row(rows, &in, end, err));
        }
        in.at = next != NULL ? next + 1 : in.end;
    }
out:
    return st;
}

/* --- .npy */

static bool rows_is_npy(const char *path, const dt_mapping *file)
{
    size_t length = strlen(path);

    return dt_npy_has_magic(file->bytes, file->length) ||
           (length > 4 && strcmp(path + length - 4, ".npy") == 0);
}

static dt_status open_table(dt_npy *out, const dt_rows *rows, const char *path,
                            const dt_mapping *file, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_npy_read(out, path, file->bytes, file->length, err));
    st = rows_check_columns(rows, out->columns, err);
    if (st != DT_OK)
        dt_error_prefix(err, "'%s'", path);
out:
    return st;
}

static dt_status rows_count_npy(int64_t *count, const dt_rows *rows, const char *path,
                                const dt_mapping *file, dt_error *err)
{
    dt_npy table;
    dt_status st = DT_OK;

    DT_TRY(open_table(&table, rows, path, file, err));
    *count = table.rows;
out:
    return st;
}

static dt_status rows_read_npy(dt_rows *rows, const char *path, const dt_mapping *file,
                               dt_error *err)
{
    dt_npy table;
    dt_status st = DT_OK;

    DT_TRY(open_table(&table, rows, path, file, err));
    DT_TRY(rows_reserve(rows, table.rows, err));
    for (int64_t row = 0; row < table.rows; row++, rows->count++) {
        for (int64_t column = 0; column < table.columns; column++) {
            double value = dt_npy_number(&table, file->bytes, row * table.columns + column);

            st = rows_put(rows, column, value, NULL, err);
            if (st != DT_OK) {
                dt_error_prefix(err, "'%s', element [%lld, %lld]", path, (long long)row,
                                (long long)column);
                goto out;
            }
        }
    }
out:
    return st;
}
