/* bar: draws a progress bar of a given width.
 *
 *   ━━━━━━━━━━━━╸─────────────   or   ############-------------   without Unicode
 */
#ifndef DT_RUNNER_TERM_BAR_H
#define DT_RUNNER_TERM_BAR_H

#include "runner/term/term.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds a bar of exactly `columns` columns. `share` is clamped to 0..1; NaN counts as 0. */
void dt_bar_add(dt_strbuf *out, const dt_term *term, dt_style style, double share, size_t columns);

#ifdef __cplusplus
}
#endif
#endif
