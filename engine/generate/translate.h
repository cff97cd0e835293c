/* translate: translates lines from the source language to the target language.
 *
 * At once    up to `batch` lines (search/translator.h); on a CPU fewer if their beams together exceed
 *            DT_TRANSLATIONS_EXACT, so that each line gets bit-identically the translation it has alone
 * Length     at most the run's batch.tokens, on either side: DT_ERR_USAGE naming the line of a longer
 *            source, before anything is translated
 * Errors     DT_ERR_UNSUPPORTED for a model that does not translate; else as in dt_generate
 */
#ifndef DT_ENGINE_GENERATE_TRANSLATE_H
#define DT_ENGINE_GENERATE_TRANSLATE_H

#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/strbuf.h"

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
     * and its score (beam.h). An error ends the translation. */
    dt_status (*emit)(void *context, const char *line, size_t length, double score, dt_error *err);
    void *context;
} dt_translate_options;

dt_status dt_translate(const dt_translate_options *options, dt_error *err);

#endif
