/* rows: tables of numbers from .csv and .npy files, whole in host memory: what a model on rows trains
 * on.
 *
 * A row      so many inputs, then its target, or its targets
 * .csv       a row a line: decimal numbers with commas between them, spaces around them allowed. A
 *            first line that does not begin with a number names the columns and is left out, as are
 *            empty lines. "\n" or "\r\n"
 * .npy       told by its first bytes; a row a row (npy.h). The same numbers as from .csv, to the bit:
 *            both go through double precision to fp32
 * Targets    a class, 0 .. outputs-1; or `outputs` numbers
 * Files      joined in the order of the list, of either kind
 * Errors     DT_ERR_RECIPE with file and line and column, or the element as NumPy counts: no number,
 *            none that is finite, too few or too many of them, a class out of range
 */
#ifndef DT_ENGINE_DATA_ROWS_H
#define DT_ENGINE_DATA_ROWS_H

#include "engine/data/files.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_rows {
    int64_t inputs, outputs; /* of a row */
    bool classes;            /* the target is a class, else `outputs` numbers */
    int64_t count, capacity; /* rows */
    float *values;           /* (count, inputs) */
    int32_t *class_ids;      /* (count) */
    float *numbers;          /* (count, outputs) */
} dt_rows;

/* What the recipe says about a row; nothing to release. */
void dt_rows_init(dt_rows *out, const dt_recipe *recipe);
/* Appends the rows of all files. */
dt_status dt_rows_read(dt_rows *rows, const dt_data_files *files, dt_error *err);
/* How many rows the files have, from their headers; -1 where only reading them tells. */
dt_status dt_rows_count(int64_t *count, const dt_rows *rows, const dt_data_files *files,
                        dt_error *err);
void dt_rows_release(dt_rows *rows);

/* Row `row` to place `place` of the tensors of a batch (rows, targets). */
void dt_rows_copy(void *const inputs[], int64_t place, const dt_rows *rows, int64_t row);
/* A row there that does not count. */
void dt_rows_blank(void *const inputs[], int64_t place, const dt_rows *rows);

#ifdef __cplusplus
}
#endif
#endif
