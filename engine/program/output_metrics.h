/* output_metrics: finds metrics in the output of a program, and sends them as events.
 *
 * Lines    end with a newline or, for progress bars, with a carriage return; longer ones than 64 KiB are skipped.
 *          Escape sequences of terminals are ignored
 * json     JSON objects with a whole number "step": each of their other numbers is a metric. NaN, Infinity and numbers
 *          beyond a double are values that are not finite; texts are ignored. The same of dictionaries as Python prints
 *          them; one with an "epoch" and no step, as of transformers' Trainer, has the step of the progress bar on
 *          stderr, or without a bar the number of the line
 * pattern  an expression for lines of stdout and stderr; each group but "step" is a metric. Without a group "step" the
 *          lines are counted
 * Limits   256 names, 200 lines a second (the first 1000 are always taken), a step of a metric once and not below
 *          the last one. What is left out is logged at once, and counted at the end
 */
#ifndef DT_ENGINE_PROGRAM_OUTPUT_METRICS_H
#define DT_ENGINE_PROGRAM_OUTPUT_METRICS_H

#include "engine/channel/events.h"
#include "recipes/fields/recipe.h"

typedef struct dt_output_metrics dt_output_metrics;

/* *out: NULL if the recipe asks for no metrics. first_step: the one that the program continues at. */
dt_status dt_output_metrics_open(dt_output_metrics **out, const dt_recipe *recipe,
                                 int64_t first_step, dt_events *events, dt_error *err);
/* Logs what was left out, and frees. Accepts NULL, as the functions below do. */
void dt_output_metrics_close(dt_output_metrics *metrics);
/* DT_ERR_PEER: the channel is lost. */
dt_status dt_output_metrics_read(dt_output_metrics *metrics, const char *bytes, size_t length,
                                 dt_error *err);
/* Reads a piece of stderr: for a pattern, and the state of a progress bar. */
dt_status dt_output_metrics_read_errors(dt_output_metrics *metrics, const char *bytes,
                                        size_t length, dt_error *err);
/* Takes values that have waited too long for a progress bar. ended: also the last line, without its end. */
dt_status dt_output_metrics_settle(dt_output_metrics *metrics, bool ended, dt_error *err);
/* Returns whether dt_output_metrics_settle has to be called soon. */
bool dt_output_metrics_waits(const dt_output_metrics *metrics);
/* Returns the last step, and the last loss (NaN: none). */
int64_t dt_output_metrics_step(const dt_output_metrics *metrics, double *loss);

#endif
