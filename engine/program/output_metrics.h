/* output_metrics: finds metrics in the output of a program, and sends them as events.
 *
 * Lines    end with a newline or, for progress bars, with a carriage return; longer ones than 64 KiB are skipped
 * json     a JSON object with a whole number "step": each of its other numbers is a metric. NaN and Infinity, which
 *          Python writes, are values that are not finite; other kinds of values are ignored
 * pattern  an expression with a group "step"; each other group is a metric
 * Limits   256 names, 200 lines a second (the first 1000 are always taken), a step of a metric once and not below
 *          the last one. What is left out is logged at once, and counted at the end
 */
#ifndef DT_ENGINE_PROGRAM_OUTPUT_METRICS_H
#define DT_ENGINE_PROGRAM_OUTPUT_METRICS_H

#include "engine/channel/events.h"
#include "recipes/fields/recipe.h"

typedef struct dt_output_metrics dt_output_metrics;

/* *out: NULL if the recipe asks for no metrics. */
dt_status dt_output_metrics_open(dt_output_metrics **out, const dt_recipe *recipe,
                                 dt_events *events, dt_error *err);
/* Reads the last line, logs what was left out, and frees. Accepts NULL. */
void dt_output_metrics_close(dt_output_metrics *metrics);
/* DT_ERR_PEER: the channel is lost. */
dt_status dt_output_metrics_read(dt_output_metrics *metrics, const char *bytes, size_t length,
                                 dt_error *err);
/* Returns the last step, and the last loss (NaN: none). */
int64_t dt_output_metrics_step(const dt_output_metrics *metrics, double *loss);

#endif
