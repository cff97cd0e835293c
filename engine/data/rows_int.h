/* rows_int: what the readers of rows share: rows_csv.c, rows_npy.c. */
#ifndef DT_ENGINE_DATA_ROWS_INT_H
#define DT_ENGINE_DATA_ROWS_INT_H

#include "engine/data/mapping.h"
#include "engine/data/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a row: its inputs and its target, or targets. */
int64_t dt_rows_columns(const dt_rows *rows);
/* DT_ERR_RECIPE where a row has another number of columns. The caller puts the place in front. */
dt_status dt_rows_check_columns(const dt_rows *rows, int64_t columns, dt_error *err);

/* Room for so many rows more. */
dt_status dt_rows_reserve(dt_rows *rows, int64_t more, dt_error *err);
/* A number to column `column` of the row behind the last, for which there is room; rows->count++ ends
 * the row. `text`: as the file has it, for a message; NULL: as C writes it. The caller puts the place
 * in front. */
dt_status dt_rows_put(dt_rows *rows, int64_t column, double value, const char *text, dt_error *err);

/* Appends the rows of a file. */
dt_status dt_rows_read_csv(dt_rows *rows, const char *path, const dt_mapping *file, dt_error *err);
dt_status dt_rows_read_npy(dt_rows *rows, const char *path, const dt_mapping *file, dt_error *err);
/* Whether the file is one, by its first bytes or its name, and the number of its rows then. */
bool dt_rows_is_npy(const char *path, const dt_mapping *file);
dt_status dt_rows_count_npy(int64_t *count, const dt_rows *rows, const char *path,
                            const dt_mapping *file, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
