/* weights_int: what the files of this folder share. */
#ifndef DT_ENGINE_WEIGHTS_INT_H
#define DT_ENGINE_WEIGHTS_INT_H

#include "engine/checkpoint/index.h"
#include "engine/checkpoint/part.h"
#include "engine/weights/weights.h"
#include "recipes/huggingface.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_weights {
    dt_arena arena;
    const dt_weights_files *files;
    dt_checkpoint_part *parts;  /* [files->files.count]: an open file, and its header */
    json_t *description;        /* config.json or index.json; of a .bin file, what it says */
    const dt_published *family; /* of all but a checkpoint's */
    int64_t head_width;         /* of a .bin file: rows of a head of queries or keys */
    dt_checkpoint_index index;  /* of a checkpoint */
};

/* A piece of a parameter, as it lies in a file. */
typedef struct dt_weights_piece {
    const dt_checkpoint_part *part;
    int64_t start_bytes;
    dt_dtype dtype;
    bool transposed;
    int64_t paired_rows; /* dt_published_tensor.paired: rows of a head; 0: they lie as ours */
    dt_slice
        slice; /* of the parameter, untransposed; its box may have more rows than the parameter */
} dt_weights_piece;

/* names.c: their name of a parameter of ours, without the prefix; NULL: the family has none. `row`:
 * its row of the table. */
const char *dt_weights_name(const dt_published_tensor **row, const dt_published *family,
                            const char *ours, dt_arena *arena);
/* Whether the name is one that the pattern stands for ("h.*.attn.bias"). */
bool dt_weights_matches(const char *pattern, const char *name);
/* As the class writes it. */
const char *dt_weights_full_name(const dt_published *family, const char *theirs, dt_arena *arena);

/* find.c: the tensor of one of their names, with or without the prefix. *part NULL: there is none. */
dt_status dt_weights_look(const dt_checkpoint_part **part, dt_safetensors_tensor *tensor,
                          const char **key, const dt_weights *weights, const char *theirs,
                          dt_error *err);
/* The whole parameter, which is one piece. Shape and type are checked. */
dt_status dt_weights_find_tensor(dt_weights_piece *out, const char **key, dt_weights *weights,
                                 const dt_param *param, dt_error *err);

/* read.c: `elems` of the piece's, from element `first` of its slice. */
dt_status dt_weights_read_piece(float *out, const dt_weights_piece *piece, int64_t first,
                                int64_t elems, const char *name, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
