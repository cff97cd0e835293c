/* index: what readers of a checkpoint's files need: the shape of a parameter as stored, index.json as
 * structs, and the files that it names. docs/checkpoint.md describes the document.
 *
 * Ownership  strings are borrowed from the JSON, arrays are in the arena
 */
#ifndef DT_ENGINE_CHECKPOINT_INDEX_H
#define DT_ENGINE_CHECKPOINT_INDEX_H

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/model/model.h"
#include "engine/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* shape: gives the shape of a parameter as stored in a checkpoint.
 *
 * Padding rows (dt_param.stored_rows; for example those of a token embedding after the vocabulary) are
 * not stored: the padding is up to the program that loads the parameter, which keeps such rows
 * (and their moments) zero. As they are the last rows, the stored part is a prefix of the flattened
 * parameter.
 */

typedef struct dt_checkpoint_shape {
    int ndim;
    int64_t dim[DT_PARAM_DIMS]; /* dimensions; those after ndim are 1 */
    int64_t elems;
} dt_checkpoint_shape;

dt_checkpoint_shape dt_checkpoint_shape_of(const dt_param *param);

/* The box of a whole parameter as stored. */
dt_box dt_checkpoint_shape_box(const dt_checkpoint_shape *shape);
/* The stored part of a slice in memory: all except padding. It is a prefix of the slice, and can be
 * empty. */
dt_slice dt_checkpoint_shape_clip(const dt_checkpoint_shape *shape, const dt_slice *held);

#define DT_CHECKPOINT_FORMAT    "dtrun-checkpoint"
#define DT_CHECKPOINT_MAX_INDEX ((size_t)64 << 20)

/* Tensors stored per parameter, numbered like dt_state_chunk_data. */
enum { DT_CHECKPOINT_VALUE = 0, DT_CHECKPOINT_STATE = 1, DT_CHECKPOINT_KINDS = DT_STATE_KINDS };

const char *dt_checkpoint_kind_name(int kind); /* name of a kind: "value", "m", "v" */

/* Suffix of files with tensors; any other file is the tokenizer's. */
#define DT_CHECKPOINT_TENSORS ".safetensors"
bool dt_checkpoint_name_ends(const char *name, const char *tail);

typedef struct dt_checkpoint_file {
    const char *name; /* file name without a directory */
    int64_t bytes;
    const char *digest;
} dt_checkpoint_file;

/* A slice of a parameter, stored as tensor `key` of a file. */
typedef struct dt_checkpoint_piece {
    int64_t file; /* position of the file in the index's list */
    const char *key;
    dt_slice slice;
} dt_checkpoint_piece;

/* Pieces without gap or overlap that are the whole parameter, or no pieces at all. Those of a box
 * are contiguous and ascending. */
typedef struct dt_checkpoint_pieces {
    dt_checkpoint_piece *items;
    int64_t count;
} dt_checkpoint_pieces;

typedef struct dt_checkpoint_tensor {
    const char *name;
    dt_checkpoint_shape shape;
    /* pieces of each kind; the value always has some */
    dt_checkpoint_pieces pieces[DT_CHECKPOINT_KINDS];
} dt_checkpoint_tensor;

typedef struct dt_checkpoint_index {
    dt_checkpoint_info info;
    dt_checkpoint_file *files;
    int64_t file_count;
    dt_checkpoint_tensor *tensors;
    int64_t tensor_count;
} dt_checkpoint_index;

/* Convert info to its part of the document (new reference), and back into a zeroed `out`. */
json_t *dt_checkpoint_info_make(const dt_checkpoint_info *info);
dt_status dt_checkpoint_info_parse(dt_checkpoint_info *out, const json_t *json, const char *where,
                                   dt_error *err);

/* Get a non-negative integer. */
dt_status dt_checkpoint_get_count(int64_t *out, const json_t *object, const char *key,
                                  const char *where, dt_error *err);

/* Convert a piece to its part of the document; writes `box` only if it is not the whole. New
 * reference. */
json_t *dt_checkpoint_piece_make(const char *file, const char *key, const dt_slice *slice,
                                 const dt_box *whole);
/* Parse what dt_checkpoint_piece_make wrote; sets slice->box.ndim to the whole's. */
dt_status dt_checkpoint_slice_parse(dt_slice *out, const json_t *json, const dt_box *whole,
                                    const char *where, dt_error *err);
/* Sort the pieces, and check that they cover the whole: each element exactly once. */
dt_status dt_checkpoint_pieces_cover(dt_checkpoint_pieces *pieces, const dt_box *whole,
                                     const char *where, dt_error *err);

/* Parse the document, and check everything that can be checked without the files. DT_ERR_CORRUPT
 * naming `where`. */
dt_status dt_checkpoint_index_parse(dt_checkpoint_index *out, json_t *json, const char *where,
                                    dt_arena *arena, dt_error *err);

/* Find a parameter by name; NULL if there is none. */
const dt_checkpoint_tensor *dt_checkpoint_index_find(const dt_checkpoint_index *index,
                                                     const char *name);

/* Build the document from the ranks' fragments (checkpoint_int.h). New reference; NULL if out of
 * memory. */
json_t *dt_checkpoint_index_make(const dt_checkpoint_info *info, const dt_model *model,
                                 json_t *const *fragments, int64_t fragment_count);

/* part: reads one file of an open checkpoint: a file of tensors, or the tokenizer's file,
 * which has no tensors.
 *
 * A file is opened on first use, and its digest is checked once over the whole file, so that damaged
 * data are never returned.
 */

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
