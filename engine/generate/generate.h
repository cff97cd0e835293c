/* generate: text from a checkpoint, token by token.
 *
 * Purpose    shows what a run has learnt; any checkpoint, whatever ranks and strategy wrote it
 * Window     the model sees at most its context: past that, the newest tokens
 * Determinism  same checkpoint, prompt, seed and threads: same text
 * Ids        of a run on token ids, which have no text, prompt and text are numbers: "12 7 400 "
 * Errors     DT_ERR_USAGE for a prompt with characters that the tokenizer lacks; DT_ERR_CORRUPT,
 *            DT_ERR_NOT_FOUND from the checkpoint
 */
#ifndef DT_ENGINE_GENERATE_GENERATE_H
#define DT_ENGINE_GENERATE_GENERATE_H

#include "base/strbuf.h"
#include "engine/generate/sample.h"

typedef struct dt_generate_options {
    const char *checkpoint; /* directory */
    const char *prompt;     /* "": starts at a line break, or at token 0 where there is none */
    int64_t tokens;         /* how many to add */
    const char *device;     /* "cpu" or "cuda:N" */
    int64_t threads;        /* CPU; 0: all cores */
    dt_sampling sampling;
} dt_generate_options;

/* Adds the new text, without the prompt, to `out`. *step: of the checkpoint. */
dt_status dt_generate(dt_strbuf *out, int64_t *step, const dt_generate_options *options,
                      dt_error *err);

#endif
