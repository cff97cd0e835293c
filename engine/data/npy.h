/* npy: reads the header of NumPy's .npy files (numpy.lib.format, versions 1.0, 2.0 and 3.0).
 *
 *   "\x93NUMPY", version (2 bytes), length of what follows (2 bytes; from 2.0 on 4),
 *   {'descr': '<f8', 'fortran_order': False, 'shape': (3000, 5), }, spaces, "\n", numbers
 *
 * Supported  two dimensions, row by row (C order), little-endian: float32, float64, and integers
 *            of 1, 2, 4 or 8 bytes, signed or unsigned
 * Errors     DT_ERR_RECIPE naming the file and the unsupported part of its header, with a remedy
 */
#ifndef DT_ENGINE_DATA_NPY_H
#define DT_ENGINE_DATA_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_npy {
    char kind;       /* type of the numbers: 'f', 'i' or 'u' */
    int width_bytes; /* bytes per number */
    int64_t rows, columns;
    size_t start; /* offset of the numbers, which extend to the end of the file */
} dt_npy;

bool dt_npy_has_magic(const unsigned char *bytes, size_t length);

/* Parse the header. `bytes`: the contents of the whole file. */
dt_status dt_npy_read(dt_npy *out, const char *path, const unsigned char *bytes, size_t length,
                      dt_error *err);

/* Convert number `index`, counted row by row. */
double dt_npy_number(const dt_npy *npy, const unsigned char *bytes, int64_t index);

#ifdef __cplusplus
}
#endif
#endif
