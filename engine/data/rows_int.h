/* rows_int: declares what rows_csv.c and rows_npy.c share. */
#ifndef DT_ENGINE_DATA_ROWS_INT_H
#define DT_ENGINE_DATA_ROWS_INT_H

#include "engine/data/mapping.h"
#include "engine/data/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Columns of a row: inputs and target, or targets. */
int64_t dt_rows_columns(const dt_rows *rows);
/* DT_ERR_RECIPE if `columns` is not dt_rows_columns. The caller prefixes the position. */
dt_status dt_rows_check_columns(const dt_rows *rows, int64_t columns, dt_error *err);

/* Allocate memory for `more` additional rows. */
dt_status dt_rows_reserve(dt_rows *rows, int64_t more, dt_error *err);
/* Store a number in column `column` of the next row, for which memory must be reserved; the caller
 * ends the row by rows->count++. `text`: the number as in the file, for a message; NULL: format it.
 * The caller prefixes the position. */
dt_status dt_rows_put(dt_rows *rows, int64_t column, double value, const char *text, dt_error *err);

/* Append the rows of a file. */
dt_status dt_rows_read_csv(dt_rows *rows, const char *path, const dt_mapping *file, dt_error *err);
dt_status dt_rows_read_npy(dt_rows *rows, const char *path, const dt_mapping *file, dt_error *err);
/* Whether the file is .npy, by its first bytes or its name; and the number of rows of such a file. */
bool dt_rows_is_npy(const char *path, const dt_mapping *file);
dt_status dt_rows_count_npy(int64_t *count, const dt_rows *rows, const char *path,
                            const dt_mapping *file, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
