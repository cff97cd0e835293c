/* export_int: a folder while it is written. */
#ifndef DT_ENGINE_WEIGHTS_EXPORT_INT_H
#define DT_ENGINE_WEIGHTS_EXPORT_INT_H

#include "engine/checkpoint/checkpoint.h"
#include "engine/weights/export.h"
#include "recipes/huggingface.h"

typedef struct dt_weights_exporter {
    const dt_weights_export_options *options;
    dt_weights_export_result *result;
    int held; /* the checkpoint's directory */
    dt_checkpoint *checkpoint;
    dt_arena arena;
    dt_recipe recipe; /* that it was trained by */
    const dt_published *family;
    int64_t vocab;
    dt_model *model;  /* described */
    dt_strbuf final;  /* the folder's name */
    dt_strbuf folder; /* until it is whole */
    dt_strbuf path;   /* of the file at hand */
    bool begun;       /* `folder` is there */
} dt_weights_exporter;

/* export.c: a new file in the folder; fd is the caller's until it is closed. */
dt_status dt_weights_export_open(int *fd, dt_weights_exporter *e, const char *name, dt_error *err);
dt_status dt_weights_export_close(int fd, const dt_weights_exporter *e, dt_error *err);
dt_status dt_weights_export_put_json(dt_weights_exporter *e, const char *name, const json_t *json,
                                     dt_error *err);

/* export_tensors.c: the files of tensors, and their index where there are several. */
dt_status dt_weights_export_tensors(dt_weights_exporter *e, dt_error *err);

#endif
