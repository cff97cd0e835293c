/* weights_int: declares what the files of this folder share. */
#ifndef DT_ENGINE_WEIGHTS_INT_H
#define DT_ENGINE_WEIGHTS_INT_H

#include "engine/checkpoint/index.h"
#include "engine/checkpoint/part.h"
#include "engine/weights/weights.h"
#include "recipes/foreign/huggingface.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_weights {
    dt_arena arena;
    const dt_weights_files *files;
    dt_checkpoint_part *parts; /* [files->files.count]: open files with their headers */
    /* config.json or index.json; for a .bin file, made from its header */
    json_t *description;
    const dt_published *family; /* table of published names; NULL for a checkpoint */
    int64_t head_width;         /* for a .bin file: rows per head of queries or keys */
    dt_checkpoint_index index;  /* index of a checkpoint */
};

/* A piece of a parameter, as stored in a file. */
typedef struct dt_weights_piece {
    const dt_checkpoint_part *part;
    int64_t start_bytes;
    dt_dtype dtype;
    bool transposed;
    int64_t paired_rows; /* dt_published_tensor.paired: rows per head; 0: rows are in our order */
    /* range of the parameter, untransposed; its box can have more rows than the parameter */
    dt_slice slice;
} dt_weights_piece;

/* names.c: the published name of a parameter, without the prefix; NULL: the family has none. `row`:
 * its row in the table. */
const char *dt_weights_name(const dt_published_tensor **row, const dt_published *family,
                            const char *ours, dt_arena *arena);
/* Whether a name matches the pattern ("h.*.attn.bias"). */
bool dt_weights_matches(const char *pattern, const char *name);
/* Prefix a published name like the model class does. */
const char *dt_weights_full_name(const dt_published *family, const char *theirs, dt_arena *arena);

/* find.c: find a tensor by its published name, with or without the prefix. *part NULL: there is
 * none. */
dt_status dt_weights_look(const dt_checkpoint_part **part, dt_safetensors_tensor *tensor,
                          const char **key, const dt_weights *weights, const char *theirs,
                          dt_error *err);
/* Find a whole parameter, stored as one piece. Checks shape and type. */
dt_status dt_weights_find_tensor(dt_weights_piece *out, const char **key, dt_weights *weights,
                                 const dt_param *param, dt_error *err);

/* read.c: read `elems` elements of a piece, starting at element `first` of its slice. */
dt_status dt_weights_read_piece(float *out, const dt_weights_piece *piece, int64_t first,
                                int64_t elems, const char *name, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
