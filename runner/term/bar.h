/* bar: how much of something is done, in a given width.
 *
 *   ━━━━━━━━━━━━╸─────────────   or   ############-------------   without Unicode
 */
#ifndef DT_RUNNER_TERM_BAR_H
#define DT_RUNNER_TERM_BAR_H

#include "runner/term/term.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `share` is clamped to 0..1 (NaN is 0); exactly `columns` columns are added. */
void dt_bar_add(dt_strbuf *out, const dt_term *term, dt_style style, double share, size_t columns);

#ifdef __cplusplus
}
#endif
#endif
