/* continue: lines become the beginnings of texts, which grow side by side.
 *
 * Side by side  up to `batch` lines; where one has ended the next takes its place, so that no line waits for the
 *               longest of its neighbours. Each is first read alone; then a pass adds a token to all of them
 * The same      line i, from 0, has the text of dt_generate with the line as prompt and seed + i; on a CPU for
 *               every batch up to DT_CONTINUE_EXACT, to the bit
 * Errors        DT_ERR_USAGE for a line with characters that the tokenizer lacks, naming it, before anything
 *               is made; else as dt_generate
 */
#ifndef DT_ENGINE_GENERATE_CONTINUE_H
#define DT_ENGINE_GENERATE_CONTINUE_H

#include "engine/generate/text.h"

#define DT_CONTINUE_EXACT 16 /* rows that products take one by one (ops/cpu/matmul_int.h) */

typedef struct dt_continue_options {
    const char *checkpoint; /* directory */
    const char *text;       /* lines; the last may lack its line break */
    size_t length;
    const int64_t *
        numbers; /* [lines] of a longer text's, from 0, for seeds and messages; NULL: 0, 1, 2 ... */
    int64_t batch;
    dt_text_rules rules;
    const char *device; /* "cpu" or "cuda:N" */
    int64_t threads;    /* CPU; 0: all cores */
    dt_dtype precision; /* F32 or BF16: of weights and activations */
    /* Each text, in the order of the lines, once it and all before it are done. What it returns ends all. */
    dt_status (*emit)(void *context, const char *prompt, size_t length, const dt_text *text,
                      dt_error *err);
    /* Before each pass that adds a token; may be NULL. What it returns ends all. */
    dt_status (*before)(void *context, dt_error *err);
    void *context;
} dt_continue_options;

/* Adds a text as a line: what it begins with and what was added, line breaks as spaces, and valid UTF-8. */
void dt_continued_line(dt_strbuf *out, const char *prompt, size_t length, const dt_text *text);

/* *step: of the checkpoint. */
dt_status dt_continue(int64_t *step, const dt_continue_options *options, dt_error *err);

#endif
