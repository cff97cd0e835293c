/* translate: lines of a source language become lines of the target language.
 *
 * Side by side  up to `batch` lines (search/translator.h); on a CPU fewer where the beams of all are more than
 *               DT_TRANSLATIONS_EXACT, so that a line has the translation that it has alone, to the bit
 * Length        as many tokens as the run's batch.tokens at most, on either side: DT_ERR_USAGE for a longer
 *               source, naming its line, before any is translated
 * Errors        DT_ERR_UNSUPPORTED for a model that does not translate; else as dt_generate
 */
#ifndef DT_ENGINE_GENERATE_TRANSLATE_H
#define DT_ENGINE_GENERATE_TRANSLATE_H

#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/strbuf.h"

typedef struct dt_translate_options {
    const char *checkpoint; /* directory */
    const char *text;       /* lines; the last may lack its line break */
    size_t length;
    const int64_t
        *numbers; /* [lines] of a longer text's, from 0, for messages; NULL: 0, 1, 2 ... */
    int64_t batch, beams;
    double length_penalty;
    const char *device; /* "cpu" or "cuda:N" */
    int64_t threads;    /* CPU; 0: all cores */
    dt_dtype precision; /* F32 or BF16: of weights and activations */
    /* Each line, without its line break, in order, once it and all before it are done, and its score
     * (beam.h). What it returns ends the translation. */
    dt_status (*emit)(void *context, const char *line, size_t length, double score, dt_error *err);
    void *context;
} dt_translate_options;

dt_status dt_translate(const dt_translate_options *options, dt_error *err);

#endif
