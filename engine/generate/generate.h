/* generate: generates, continues, translates and scores text with a checkpoint.
 *
 * Purpose    shows what a run has learned; works with any checkpoint, whatever ranks and strategy wrote it
 * Determinism  same checkpoint, prompt, seed and threads: same text
 * Errors     those of text.h; DT_ERR_CORRUPT, DT_ERR_NOT_FOUND from the checkpoint
 */
#ifndef DT_ENGINE_GENERATE_GENERATE_H
#define DT_ENGINE_GENERATE_GENERATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/strbuf.h"
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

/* continue: generates continuations of lines, several at once.
 *
 * At once    up to `batch` lines; when one has ended the next takes its place, so no line waits for the
 *            longest. Each prompt is first read alone; then each pass adds a token to all lines
 * The same   line i, from 0, gets the text of dt_generate with the line as prompt and seed + i; on a CPU
 *            bit-identical for every batch up to DT_CONTINUE_EXACT
 * Errors     DT_ERR_USAGE naming a line with characters that the tokenizer lacks, before anything
 *            is generated; else as in dt_generate
 */

#define DT_CONTINUE_EXACT 16 /* rows that products process one by one (engine/ops/cpu/ops_int.h) */

typedef struct dt_continue_options {
    const char *checkpoint;       /* checkpoint directory */
    const dt_weights_files *base; /* of an adapter (dt_loaded_open) */
    const char *text;             /* text of all lines; the last line break is optional */
    size_t length;
    /* [lines]: numbers in a longer text, from 0, for seeds and messages; NULL: 0, 1, 2 ... */
    const int64_t *numbers;
    /* MAY: makes the ids of a line instead of the tokenizer; *ids is empty. Called for each line before anything is
     * generated, after `open`, which gets the checkpoint and may add tokens that end texts. */
    dt_status (*open)(void *context, dt_loaded *from, dt_error *err);
    dt_status (*encode)(void *context, dt_ids *ids, const char *line, size_t length, dt_error *err);
    int64_t batch;
    dt_text_rules rules;
    const char *device; /* device: "cpu" or "cuda:N" */
    int64_t threads;    /* CPU threads; 0: all cores */
    dt_dtype precision; /* F32 or BF16: type of weights and activations */
    /* Called with each text, in the order of the lines, once it and all before it are done. An
     * error ends everything. */
    dt_status (*emit)(void *context, const char *prompt, size_t length, const dt_text *text,
                      dt_error *err);
    /* Called before each pass that adds a token; can be NULL. An error ends everything. */
    dt_status (*before)(void *context, dt_error *err);
    void *context;
} dt_continue_options;

/* Append a text as one line: the prompt and the generated part, with line breaks as spaces, in
 * valid UTF-8. */
void dt_continued_line(dt_strbuf *out, const char *prompt, size_t length, const dt_text *text);

/* *step: the checkpoint's step. */
dt_status dt_continue(int64_t *step, const dt_continue_options *options, dt_error *err);

/* translate: translates lines from the source language to the target language.
 *
 * At once    up to `batch` lines (engine/search/search.h); on a CPU fewer if their beams together exceed
 *            DT_TRANSLATIONS_EXACT, so that each line gets bit-identically the translation it has alone
 * Length     at most the run's batch.tokens, on either side: DT_ERR_USAGE naming the line of a longer
 *            source, before anything is translated
 * Errors     DT_ERR_UNSUPPORTED for a model that does not translate; else as in dt_generate
 */

typedef struct dt_translate_options {
    const char *checkpoint; /* checkpoint directory */
    const char *text;       /* text of all lines; the last line break is optional */
    size_t length;
    const int64_t
        *numbers; /* [lines]: numbers in a longer text, from 0, for messages; NULL: 0, 1, 2 ... */
    int64_t batch, beams;
    double length_penalty;
    bool past_end;      /* end only at the maximum length */
    const char *device; /* device: "cpu" or "cuda:N" */
    int64_t threads;    /* CPU threads; 0: all cores */
    dt_dtype precision; /* F32 or BF16: type of weights and activations */
    /* Called with each line, without its line break, in order, once it and all before it are done,
     * and its score (engine/search/search.h). An error ends the translation. */
    dt_status (*emit)(void *context, const char *line, size_t length, double score, dt_error *err);
    void *context;
} dt_translate_options;

dt_status dt_translate(const dt_translate_options *options, dt_error *err);

/* score: computes the natural log-likelihood of lines under a checkpoint.
 *
 * A text       starts with the usual first tokens (the tokenizer's end-of-text token, or else a line break);
 *              then the line's tokens, then the end-of-text token if there is one
 * A pair       the target's tokens and its end, given the source
 * Numbers      agree with validation: their sum over the lines' tokens is the validation loss of these lines
 * Windows      a text longer than the context is split into windows of that length, each of which
 *              overlaps the previous one by half; each token is predicted once, with at least half a
 *              context before it (except in the first window)
 * Errors       DT_ERR_USAGE naming the line of a sentence that is longer than the context; else as in
 *              dt_generate
 */

typedef struct dt_score_lines {
    const char *text; /* lines; the last line break is optional. NULL: none */
    size_t length;
} dt_score_lines;

typedef struct dt_score_options {
    const char *checkpoint;       /* checkpoint directory */
    const dt_weights_files *base; /* of an adapter (dt_loaded_open) */
    dt_score_lines input;
    dt_score_lines target; /* translations, for a run on sentence pairs: as many lines */
    /* [lines]: numbers in a longer text, from 0, for messages; NULL: 0, 1, 2 ... */
    const int64_t *numbers;
    const char *device; /* device: "cpu" or "cuda:N" */
    int64_t threads;    /* CPU threads; 0: all cores */
    /* Called for each line in order; an error ends the evaluation. */
    dt_status (*emit)(void *context, double log_likelihood, int64_t tokens, dt_error *err);
    void *context;
} dt_score_options;

dt_status dt_score(const dt_score_options *options, dt_error *err);

/* evaluate: computes the results of rows of tasks (engine/evaluation/) under a checkpoint, or under weights that no run
 * has trained.
 *
 * Memory     of passes over the longest row
 * Errors     DT_ERR_USAGE naming task and row, those of all rows before the first pass; else as in dt_generate
 */

typedef struct dt_evaluate_options {
    const char *checkpoint;       /* checkpoint directory; "": recipe and base are the model */
    const dt_recipe *recipe;      /* of a model without a checkpoint */
    const dt_weights_files *base; /* of an adapter (dt_loaded_open), or the weights of `recipe` */
    const char *text;             /* lines (engine/evaluation/evaluation.h) */
    size_t length;
    const char *device; /* device: "cpu" or "cuda:N" */
    int64_t threads;    /* CPU threads; 0: all cores */
    dt_dtype precision; /* F32 or BF16: type of weights and activations */
    /* Called with the result of each row as a line, in order; an error ends the evaluation. */
    dt_status (*emit)(void *context, const dt_strbuf *line, dt_error *err);
    /* Called before each pass; can be NULL. An error ends the evaluation. */
    dt_status (*before)(void *context, dt_error *err);
    void *context;
} dt_evaluate_options;

dt_status dt_evaluate_lines(const dt_evaluate_options *options, dt_error *err);

#endif
