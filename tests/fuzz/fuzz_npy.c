/* fuzz_npy: any .npy file of rows. Its header is refused, or it gives the number of values after
 * it, and these exist.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/data/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Memory that ends where the file does, so that a read past it is noticed. */
static void try_file(const unsigned char *bytes, size_t size)
{
    dt_error err = DT_ERROR_INIT;
    dt_npy table;
    dt_status st = dt_npy_read(&table, "rows.npy", bytes, size, &err);

    if (st != DT_OK) {
        DT_ASSERT(st == DT_ERR_RECIPE && strstr(err.message, "'rows.npy'") == err.message);
        return;
    }
    DT_ASSERT(table.rows >= 0 && table.columns >= 0 && table.start <= size);
    if (table.rows == 0 || table.columns == 0)
        return;
    DT_ASSERT((size_t)table.rows <= (size - table.start) / (size_t)table.columns);
    (void)dt_npy_number(&table, bytes, 0);
    (void)dt_npy_number(&table, bytes, table.rows * table.columns - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    unsigned char *copy = malloc(size > 0 ? size : 1);

    DT_ASSERT(copy != NULL);
    if (size > 0)
        memcpy(copy, bytes, size);
    try_file(copy, size);
    free(copy);
    return 0;
}
