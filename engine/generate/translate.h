/* translate: lines of a source language become lines of the target language.
 *
 * Search     beam.h; one line at a time, in their order
 * Length     as many tokens as the run's batch.tokens at most, on either side: DT_ERR_USAGE for a longer
 *            source, naming its line
 * Errors     DT_ERR_UNSUPPORTED for a model that does not translate; else as dt_generate
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
    int64_t beams;
    double length_penalty;
    const char *device; /* "cpu" or "cuda:N" */
    int64_t threads;    /* CPU; 0: all cores */
    dt_dtype precision; /* F32 or BF16: of weights and activations */
    /* Each line as it is done, without its line break, in order, and its score (beam.h). What it returns
     * ends the translation. */
    dt_status (*emit)(void *context, const char *line, size_t length, double score, dt_error *err);
    void *context;
} dt_translate_options;

dt_status dt_translate(const dt_translate_options *options, dt_error *err);

#endif
