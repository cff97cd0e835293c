/* part: reads one file of an open checkpoint: tensors, or the tokenizer's file, which has none.
 *
 * A file is opened on first use, and its digest is checked once over the whole file, so that damaged
 * data are never returned.
 */
#ifndef DT_ENGINE_CHECKPOINT_PART_H
#define DT_ENGINE_CHECKPOINT_PART_H

#include "engine/checkpoint/index.h"
#include "engine/checkpoint/safetensors.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_checkpoint_part {
    int fd; /* file descriptor; -1: not open */
    dt_safetensors header;
    const char *path; /* path of the file, borrowed */
} dt_checkpoint_part;

/* DT_ERR_CORRUPT if size, digest or header do not match the index. */
dt_status dt_checkpoint_part_open(dt_checkpoint_part *out, const char *path,
                                  const dt_checkpoint_file *file, dt_error *err);
void dt_checkpoint_part_close(dt_checkpoint_part *part);

/* Find the start of a piece in the file. DT_ERR_CORRUPT if it is missing. */
dt_status dt_checkpoint_part_find(int64_t *start_bytes, const dt_checkpoint_part *part,
                                  const dt_checkpoint_piece *piece, dt_error *err);
/* Read `elems` elements of a piece, starting at element skip_elems. */
dt_status dt_checkpoint_part_read(float *out, const dt_checkpoint_part *part, int64_t start_bytes,
                                  int64_t skip_elems, int64_t elems, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
