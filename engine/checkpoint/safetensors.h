/* safetensors: reads and writes the file format of checkpoints and of published weights, and reads a range
 * of a file.
 *
 *   8 bytes            N, unsigned, little-endian
 *   N bytes            JSON: {"__metadata__": {text: text}, KEY: {"dtype": "F32",
 *                      "shape": [rows, cols], "data_offsets": [begin, end]}, ...}, padded with
 *                      spaces to a multiple of 8; offsets count from the end of the header
 *   the rest           the tensors, without gaps
 *
 * Source     https://github.com/huggingface/safetensors, "Format"
 * Types      all that have whole bytes; checkpoints hold F32 only
 * Errors     DT_ERR_CORRUPT naming `where` and the mismatch
 */
#ifndef DT_ENGINE_CHECKPOINT_SAFETENSORS_H
#define DT_ENGINE_CHECKPOINT_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

/* read_at: reads a whole range of a file, through short reads and EINTR. */

/* DT_ERR_CORRUPT if the file ends too early; `where` names the file in messages. */
dt_status dt_checkpoint_read_at(void *out, size_t length, int fd, int64_t at_bytes,
                                const char *where, dt_error *err);

#define DT_SAFETENSORS_MAX_HEADER ((size_t)64 << 20)

/* --- writing: add every tensor in the order of its data, then call end, then write the data */
typedef struct dt_safetensors_writer {
    json_t *header;
    int64_t bytes; /* bytes of data so far */
} dt_safetensors_writer;

dt_status dt_safetensors_writer_init(dt_safetensors_writer *out, dt_error *err);
void dt_safetensors_writer_release(dt_safetensors_writer *writer); /* accepts a zeroed writer */
/* Keys must be unique. */
void dt_safetensors_writer_add(dt_safetensors_writer *writer, const char *key, dt_dtype dtype,
                               const int64_t *dim, int ndim);
/* Append the start of the file to `out`: length, header, padding. */
void dt_safetensors_writer_end(dt_strbuf *out, const dt_safetensors_writer *writer);

/* --- reading */
typedef struct dt_safetensors {
    json_t *header;     /* the JSON header, validated */
    int64_t data_start; /* offset of the tensor data in the file */
} dt_safetensors;

/* Read and parse the header of an open file of `bytes` bytes. */
dt_status dt_safetensors_read(dt_safetensors *out, int fd, int64_t bytes, const char *where,
                              dt_error *err);
void dt_safetensors_release(dt_safetensors *file); /* accepts a zeroed file */

#define DT_SAFETENSORS_DIMS 8

typedef struct dt_safetensors_tensor {
    const char *type; /* "F32", "I64": as in the file; valid as long as the file */
    dt_dtype dtype;   /* type as a dt_dtype; DT_DTYPE_COUNT: none of them */
    int64_t start_bytes, bytes, elems;
    int ndim;
    int64_t dim[DT_SAFETENSORS_DIMS]; /* the first DT_SAFETENSORS_DIMS dimensions */
} dt_safetensors_tensor;

/* Look up a tensor; false if it does not exist. */
bool dt_safetensors_look(dt_safetensors_tensor *out, const dt_safetensors *file, const char *key);
/* Look up an F32 tensor: the start of its data in the file, and its number of elements; false if
 * there is none. */
bool dt_safetensors_find(int64_t *start_bytes, int64_t *elems, const dt_safetensors *file,
                         const char *key);

#ifdef __cplusplus
}
#endif

#endif
