/* plot: curves in a few lines of text.
 *
 *    2.51 |⡇                        dots of Braille in colours; letters where the terminal
 *         |⠱⡀                       has neither, or several curves and no colour
 *    1.02 |  ⠉⠒⠤⠤⣀⣀
 *         +------------------------
 *          0                   2,000
 */
#ifndef DT_RUNNER_TERM_PLOT_H
#define DT_RUNNER_TERM_PLOT_H

#include <stdint.h>

#include "base/arena.h"
#include "runner/term/term.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_plot {
    const double *const *curves; /* each of `buckets` values from left to right; NaN: none */
    size_t curves_count, buckets;
    int64_t first_step, last_step; /* what is written below */
    int columns, rows;             /* of the whole, with its labels */
} dt_plot;

/* How curve `which` is drawn, for a legend: its style, and *mark, a letter or a line. */
dt_style dt_plot_style(const char **mark, const dt_term *term, size_t which, size_t curves_count);
/* As many buckets as are told apart in so many columns. */
size_t dt_plot_buckets(int columns);
/* Nothing where no curve has a value. Ends with a line feed. */
void dt_plot_add(dt_strbuf *out, const dt_term *term, const dt_plot *plot, dt_arena *arena);

/* One line of blocks, ▁ to █, from the lowest value to the highest; "" without Unicode. */
void dt_plot_spark(dt_strbuf *out, const dt_term *term, const double *values, size_t count);

#ifdef __cplusplus
}
#endif
#endif
