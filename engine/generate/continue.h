/* continue: generates continuations of lines, several at once.
 *
 * At once    up to `batch` lines; when one has ended the next takes its place, so no line waits for the
 *            longest. Each prompt is first read alone; then each pass adds a token to all lines
 * The same   line i, from 0, gets the text of dt_generate with the line as prompt and seed + i; on a CPU
 *            bit-identical for every batch up to DT_CONTINUE_EXACT
 * Errors     DT_ERR_USAGE naming a line with characters that the tokenizer lacks, before anything
 *            is generated; else as in dt_generate
 */
#ifndef DT_ENGINE_GENERATE_CONTINUE_H
#define DT_ENGINE_GENERATE_CONTINUE_H

#include "engine/generate/text.h"

#define DT_CONTINUE_EXACT 16 /* rows that products process one by one (ops/cpu/matmul_int.h) */

typedef struct dt_continue_options {
    const char *checkpoint; /* checkpoint directory */
    const char *text;       /* text of all lines; the last line break is optional */
    size_t length;
    /* [lines]: numbers in a longer text, from 0, for seeds and messages; NULL: 0, 1, 2 ... */
    const int64_t *numbers;
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

#endif
