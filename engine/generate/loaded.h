/* loaded: opens a checkpoint as a model with its weights and its tokenizer, to generate text.
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
    dt_arena arena; /* owns the recipe's strings */
    dt_recipe recipe;
    dt_tokenizer *tokenizer;
    bool ids; /* prompts and texts are token ids */
    /* tokens that end a text: model.end_ids, or the tokenizer's end-of-text token; can be empty */
    dt_ids ends;
    dt_device device;
    dt_model *model;
    dt_device_arena memory;
    dt_tensor wide; /* F32 staging for a parameter; NULL if the model is F32 */
    dt_tensor
        tokens_in; /* I32, for the tokens of the context, or one per sequence and hypothesis */
} dt_loaded;

typedef struct dt_loaded_room {
    int64_t batch;     /* number of texts in a pass over whole texts */
    int64_t sequences; /* texts or translations that are extended at once */
    int64_t kept;      /* tokens cached per text; 0: the context */
    int64_t versions;  /* hypotheses per translation; 0: one */
} dt_loaded_room;

/* Open recipe and tokenizer. A zeroed dt_loaded can be closed. */
dt_status dt_loaded_open(dt_loaded *out, const char *path, dt_error *err);
/* Then open the model for incremental decoding. dtype: type of weights and activations. */
dt_status dt_loaded_open_model(dt_loaded *l, const char *device, int64_t threads, dt_dtype dtype,
                               const dt_loaded_room *room, dt_error *err);
/* Returns DT_ERR_RECIPE, as training that diverges, so that a run is not restarted: the model computed a NaN or an
 * infinity, so its weights contain them or are too large. */
dt_status dt_loaded_diverged(dt_error *err);
/* Return in `out` the tokens that start a text without a prompt: the tokenizer's begin tokens, else
 * the end-of-text token, else a line break; none (NULL) if the model was trained on token ids, for which no such
 * token is known. The caller frees `out`. */
dt_status dt_loaded_first_tokens(int32_t **out, int64_t *count, const dt_loaded *l, dt_error *err);
void dt_loaded_close(dt_loaded *l);

/* Whether the run of a checkpoint was trained on sentence pairs. */
dt_status dt_loaded_is_of_pairs(bool *out, const char *path, dt_error *err);

#endif
