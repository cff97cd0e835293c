/* generate: generates text from a checkpoint, token by token.
 *
 * Purpose    shows what a run has learned; works with any checkpoint, whatever ranks and strategy wrote it
 * Determinism  same checkpoint, prompt, seed and threads: same text
 * Errors     those of text.h; DT_ERR_CORRUPT, DT_ERR_NOT_FOUND from the checkpoint
 */
#ifndef DT_ENGINE_GENERATE_GENERATE_H
#define DT_ENGINE_GENERATE_GENERATE_H

#include "engine/generate/text.h"

typedef struct dt_generate_options {
    const char *checkpoint; /* checkpoint directory */
    const char *prompt;
    dt_text_rules rules;
    const char *device; /* device: "cpu" or "cuda:N" */
    int64_t threads;    /* CPU threads; 0: all cores */
    dt_dtype precision; /* F32 or BF16: type of weights and activations */
    /* Called with new text as it is generated, in whole characters; can be NULL. An error ends the
     * generation. */
    dt_status (*emit)(void *context, const char *text, size_t length, dt_error *err);
    void *context;
} dt_generate_options;

typedef struct dt_generated {
    int64_t step;   /* step of the checkpoint */
    int64_t tokens; /* tokens added, including the one that ended the text */
    dt_text_end end;
    double score; /* score of a beam search */
} dt_generated;

/* Append the new text, without the prompt, to `out`. */
dt_status dt_generate(dt_strbuf *out, dt_generated *result, const dt_generate_options *options,
                      dt_error *err);

#endif
