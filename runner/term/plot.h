/* plot: draws curves in a few lines of text.
 *
 *    2.51 |⡇                        Braille dots in colours; letters if the terminal has
 *         |⠱⡀                       no Unicode, or several curves and no colour
 *    1.02 |  ⠉⠒⠤⠤⣀⣀
 *         +------------------------
 *          0                   2,000
 */
#ifndef DT_RUNNER_TERM_PLOT_H
#define DT_RUNNER_TERM_PLOT_H

#include <stdint.h>

#include "base/memory.h"
#include "runner/term/term.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_plot {
    const double *const *curves; /* each of `buckets` values from left to right; NaN: none */
    size_t curves_count, buckets;
    int64_t first_step, last_step; /* labels of the axis */
    int columns, rows;             /* of the plot with its labels */
} dt_plot;

/* Returns the style of curve `which` for a legend; *mark is its letter or line. */
dt_style dt_plot_style(const char **mark, const dt_term *term, size_t which, size_t curves_count);
/* Number of buckets that can be distinguished in `columns` columns. */
size_t dt_plot_buckets(int columns);
/* Adds the plot, or nothing if no curve has a value. Ends with a line feed. */
void dt_plot_add(dt_strbuf *out, const dt_term *term, const dt_plot *plot, dt_arena *arena);

/* Adds one line of blocks, ▁ for the lowest value to █ for the highest; nothing without Unicode. A bucket without a value
 * gets one between its neighbours, and none at the ends. */
void dt_plot_spark(dt_strbuf *out, const dt_term *term, const double *values, size_t count);

#ifdef __cplusplus
}
#endif
#endif
