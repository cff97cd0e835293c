#include <string.h>

#include "engine/data/npy.h"
#include "engine/data/rows_int.h"

bool dt_rows_is_npy(const char *path, const dt_mapping *file)
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
    st = dt_rows_check_columns(rows, out->columns, err);
    if (st != DT_OK)
        dt_error_prefix(err, "'%s'", path);
out:
    return st;
}

dt_status dt_rows_count_npy(int64_t *count, const dt_rows *rows, const char *path,
                            const dt_mapping *file, dt_error *err)
{
    dt_npy table;
    dt_status st = DT_OK;

    DT_TRY(open_table(&table, rows, path, file, err));
    *count = table.rows;
out:
    return st;
}

dt_status dt_rows_read_npy(dt_rows *rows, const char *path, const dt_mapping *file, dt_error *err)
{
    dt_npy table;
    dt_status st = DT_OK;

    DT_TRY(open_table(&table, rows, path, file, err));
    DT_TRY(dt_rows_reserve(rows, table.rows, err));
    for (int64_t row = 0; row < table.rows; row++, rows->count++) {
        for (int64_t column = 0; column < table.columns; column++) {
            double value = dt_npy_number(&table, file->bytes, row * table.columns + column);

            st = dt_rows_put(rows, column, value, NULL, err);
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
