/* loaded: a checkpoint as a model with its weights and its tokenizer, to make text with.
 *
 * Errors     DT_ERR_CORRUPT, DT_ERR_NOT_FOUND from the checkpoint
 * Threads    one
 */
#ifndef DT_ENGINE_GENERATE_LOADED_H
#define DT_ENGINE_GENERATE_LOADED_H

#include "engine/checkpoint/checkpoint.h"
#include "engine/data/data.h"
#include "engine/model/model.h"

typedef struct dt_loaded {
    dt_checkpoint *checkpoint;
    dt_arena arena; /* the recipe's strings */
    dt_recipe recipe;
    dt_tokenizer *tokenizer;
    bool ids; /* numbers instead of text */
    dt_ids
        ends; /* tokens that end a text: model.end_ids, or the tokenizer's end-of-text token; none where there is neither */
    dt_device device;
    dt_model *model;
    dt_device_arena memory;
    dt_tensor wide; /* F32, room for a parameter; NULL where the model is F32 */
    dt_tensor
        tokens_in; /* I32, room for the context's, and for one of each version of what grows */
} dt_loaded;

typedef struct dt_loaded_room {
    int64_t batch;     /* texts of a pass over whole ones */
    int64_t sequences; /* texts or translations that grow side by side */
    int64_t kept;      /* tokens of each text; 0: the context */
    int64_t versions;  /* of each translation; 0: one */
} dt_loaded_room;

/* Recipe and tokenizer; a zeroed one may be closed. */
dt_status dt_loaded_open(dt_loaded *out, const char *path, dt_error *err);
/* Then the model, for sequences that grow. dtype: of weights and activations. */
dt_status dt_loaded_open_model(dt_loaded *l, const char *device, int64_t threads, dt_dtype dtype,
                               const dt_loaded_room *room, dt_error *err);
/* DT_ERR_CORRUPT: the model computed a NaN or an infinity, so its weights hold them or are too large. */
dt_status dt_loaded_diverged(dt_error *err);
/* Returns in `out` the tokens that start a text without a prompt: the tokenizer's begin tokens, else the end-of-text
 * token, else a line break. The caller frees `out`. */
dt_status dt_loaded_first_tokens(int32_t **out, int64_t *count, const dt_loaded *l, dt_error *err);
void dt_loaded_close(dt_loaded *l);

/* Whether a checkpoint is of a run on sentence pairs. */
dt_status dt_loaded_is_of_pairs(bool *out, const char *path, dt_error *err);

#endif
