/* weights_int: declares what the files of this folder share: open weights and their pieces, and the state
 * of an export. */
#ifndef DT_ENGINE_WEIGHTS_WEIGHTS_INT_H
#define DT_ENGINE_WEIGHTS_WEIGHTS_INT_H

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/index.h"
#include "engine/data/data.h"
#include "engine/weights/weights.h"
#include "recipes/foreign/huggingface.h"
#include "recipes/foreign/peft.h"

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
    bool adapter;               /* the files have an adapter alone, without its base */
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

/* find.c: the published name of a parameter, without the prefix; NULL: the family has none. `row`:
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

/* find.c: rows of the first `end` parts of the tensor that the parameter is a part of (dt_published_tensor.parts). The
 * parameter is in its model's table, next to the other parts. */
int64_t dt_weights_part_rows(const dt_param *param, const dt_published_tensor *row, int end);

/* weights.c: read `elems` elements of a piece, starting at element `first` of its slice. */
dt_status dt_weights_read_piece(float *out, const dt_weights_piece *piece, int64_t first,
                                int64_t elems, const char *name, dt_error *err);

/* export_int: declares the state of an export. */

typedef struct dt_weights_exporter {
    const dt_weights_export_options *options;
    dt_weights_export_result *result;
    int held; /* the locked directory of the checkpoint */
    dt_checkpoint *checkpoint;
    dt_arena arena;
    dt_recipe recipe; /* recipe of the checkpoint's run */
    const dt_published *family;
    dt_tokenizer *tokenizer; /* tokenizer of the checkpoint, with its file */
    int64_t vocab;
    dt_model *model; /* the model, only described */
    dt_weights_files base_files;
    dt_weights *base; /* of an adapter that is merged; NULL: none */
    dt_strbuf final;  /* name of the folder */
    dt_strbuf folder; /* temporary name of the folder */
    dt_strbuf path;   /* path of the current file */
    bool begun;       /* `folder` was created */
} dt_weights_exporter;

/* --- export_folder.c: DT_ERR_IO naming the file */

/* Create a file in the folder; the caller owns fd until dt_weights_export_close. */
dt_status dt_weights_export_open(int *fd, dt_weights_exporter *e, const char *name, dt_error *err);
dt_status dt_weights_export_close(int fd, const dt_weights_exporter *e, dt_error *err);
/* Write a whole file. */
dt_status dt_weights_export_put(dt_weights_exporter *e, const char *name, const char *bytes,
                                size_t length, dt_error *err);
dt_status dt_weights_export_put_json(dt_weights_exporter *e, const char *name, const json_t *json,
                                     dt_error *err);

/* export_files.c: writes the configs and the tokenizer's files. */
dt_status dt_weights_export_files(dt_weights_exporter *e, dt_error *err);

/* find.c: adapters as PEFT has them; adapter.c: their export */

/* The name of A or B with a leading '/', as in tables of published names; NULL: it is none of an adapter, or the family
 * has no such weight. */
const char *dt_weights_adapter_name(const dt_published *family, const char *ours, dt_arena *arena);
/* The name of a parameter in an exported file, with its layout; NULL: the family has none. */
const char *dt_weights_export_name(const dt_published_tensor **row, dt_weights_exporter *e,
                                   const char *ours);
/* How A or B of an adapter is written: as a part of one of theirs (dt_published_tensor.parts). */
typedef struct dt_weights_joined {
    int part, parts; /* 0 and 1: as it is */
    bool diagonal;   /* B: a block on the diagonal */
} dt_weights_joined;

/* DT_ERR_RECIPE if other parts of theirs have no adapter. */
dt_status dt_weights_join_adapter(dt_weights_joined *out, dt_weights_exporter *e,
                                  const dt_param *param, dt_error *err);
/* adapter_config.json: new reference; NULL: no memory. */
json_t *dt_weights_adapter_config(const dt_weights_exporter *e);
/* Refuse what does not fit the options (DT_ERR_USAGE), and open the base of an adapter that is merged. */
dt_status dt_weights_open_base(dt_weights_exporter *e, const dt_checkpoint_info *info,
                               dt_error *err);
/* Read a parameter of the base, and add the product of its A and B, if it has an adapter. */
dt_status dt_weights_read_merged(float *values, dt_weights_exporter *e, int param, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
