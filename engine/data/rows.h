/* rows: reads tables of numbers from .csv and .npy files into host memory, to train models on rows.
 *
 * A row      the inputs, then the target or targets
 * .csv       a row per line: decimal numbers with commas between them, spaces around them allowed. A
 *            first line that does not start with a number contains column names and is skipped, as are
 *            empty lines. "\n" or "\r\n"
 * .npy       recognized by its first bytes; a row per row (npy.h). Bit-identical to the numbers from .csv:
 *            both are converted through double precision to fp32
 * Targets    a class, 0 .. outputs-1; or `outputs` numbers
 * Files      joined in the order of the list, in either format
 * Errors     DT_ERR_RECIPE with file, line and column, or the element's index as in NumPy: not a number,
 *            not finite, too few or too many numbers, a class out of range
 */
#ifndef DT_ENGINE_DATA_ROWS_H
#define DT_ENGINE_DATA_ROWS_H

#include "engine/data/files.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_rows {
    int64_t inputs, outputs; /* number of inputs and outputs per row */
    bool classes;            /* the target is a class; else `outputs` numbers */
    int64_t count, capacity; /* number of rows, and rows allocated */
    float *values;           /* (count, inputs): the inputs of all rows */
    int32_t *class_ids;      /* (count): the targets, if they are classes */
    float *numbers;          /* (count, outputs): the targets, if they are numbers */
} dt_rows;

/* Set the shape of a row from the recipe; nothing to release. */
void dt_rows_init(dt_rows *out, const dt_recipe *recipe);
/* Append the rows of all files. */
dt_status dt_rows_read(dt_rows *rows, const dt_data_files *files, dt_error *err);
/* Number of rows of the files, from their headers; -1 if only reading them determines it. */
dt_status dt_rows_count(int64_t *count, const dt_rows *rows, const dt_data_files *files,
                        dt_error *err);
void dt_rows_release(dt_rows *rows);

/* Copy row `row` to sample `place` of a batch's tensors (rows, targets). */
void dt_rows_copy(void *const inputs[], int64_t place, const dt_rows *rows, int64_t row);
/* Fill a sample with a row that does not count. */
void dt_rows_blank(void *const inputs[], int64_t place, const dt_rows *rows);

#ifdef __cplusplus
}
#endif
#endif
