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

#include "base/dtype.h"
#include "base/strbuf.h"
#include "engine/generate/sample.h"
#include "engine/generate/stops.h"

typedef enum dt_generate_end {
    DT_GENERATE_TOKENS,      /* as many as were asked for */
    DT_GENERATE_END_OF_TEXT, /* the model says that the text ends */
    DT_GENERATE_STOP         /* a stop text; it is left out */
} dt_generate_end;

typedef struct dt_generate_options {
    const char *checkpoint; /* directory */
    const char
        *prompt; /* "": starts as a document does: behind an end-of-text token where the tokenizer
                               has one, at a line break, or at token 0 where there is none */
    int64_t tokens; /* how many to add at most */
    dt_stops stops;
    bool past_end;      /* the end-of-text token is a token like others */
    const char *device; /* "cpu" or "cuda:N" */
    int64_t threads;    /* CPU; 0: all cores */
    dt_dtype precision; /* F32 or BF16: of weights and activations */
    dt_sampling sampling;
    /* New text as it comes, whole characters; may be NULL. What it returns ends the generation. */
    dt_status (*emit)(void *context, const char *text, size_t length, dt_error *err);
    void *context;
} dt_generate_options;

typedef struct dt_generated {
    int64_t step;   /* of the checkpoint */
    int64_t tokens; /* added, the one that ended the text included */
    dt_generate_end end;
} dt_generated;

/* Adds the new text, without the prompt, to `out`. */
dt_status dt_generate(dt_strbuf *out, dt_generated *result, const dt_generate_options *options,
                      dt_error *err);

/* "tokens", "end_of_text", "stop" */
const char *dt_generate_end_name(dt_generate_end end);

#endif
