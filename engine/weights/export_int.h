/* export_int: declares the state of an export. */
#ifndef DT_ENGINE_WEIGHTS_EXPORT_INT_H
#define DT_ENGINE_WEIGHTS_EXPORT_INT_H

#include "engine/checkpoint/checkpoint.h"
#include "engine/data/data.h"
#include "engine/weights/export.h"
#include "recipes/foreign/huggingface.h"

typedef struct dt_weights_exporter {
    const dt_weights_export_options *options;
    dt_weights_export_result *result;
    int held; /* the locked directory of the checkpoint */
    dt_checkpoint *checkpoint;
    dt_arena arena;
    dt_recipe recipe; /* recipe of the checkpoint's run */
    const dt_published *family;
    dt_tokenizer *tokenizer; /* of the checkpoint, with its file */
    int64_t vocab;
    dt_model *model;  /* the model, only described */
    dt_strbuf final;  /* name of the folder */
    dt_strbuf folder; /* temporary name of the folder */
    dt_strbuf path;   /* path of the current file */
    bool begun;       /* `folder` was created */
} dt_weights_exporter;

/* export.c: create a file in the folder; the caller owns fd until dt_weights_export_close. */
dt_status dt_weights_export_open(int *fd, dt_weights_exporter *e, const char *name, dt_error *err);
dt_status dt_weights_export_close(int fd, const dt_weights_exporter *e, dt_error *err);
dt_status dt_weights_export_put_json(dt_weights_exporter *e, const char *name, const json_t *json,
                                     dt_error *err);

dt_status dt_weights_export_put(dt_weights_exporter *e, const char *name, const char *bytes,
                                size_t length, dt_error *err);

/* export_files.c: write config.json, generation_config.json and the tokenizer's files. */
dt_status dt_weights_export_files(dt_weights_exporter *e, dt_error *err);

/* export_tensors.c: write the files of tensors, and their index if there are several. */
dt_status dt_weights_export_tensors(dt_weights_exporter *e, dt_error *err);

#endif
