/* confusion: prints the rows of each class by the class that a classifier predicts.
 *
 *   class   0   1   2   rows   right
 *   0      31   2   0     33  93.9 %
 *
 * With more classes than DT_CONFUSION_COLUMNS, a line has the class that it is most often taken for instead.
 */
#ifndef DT_RUNNER_VIEW_RUNS_CONFUSION_H
#define DT_RUNNER_VIEW_RUNS_CONFUSION_H

#include "base/error.h"
#include "base/json.h"
#include "runner/term/term.h"
#include "store/event.h"

#define DT_CONFUSION_COLUMNS 16

/* Adds the table of one step. DT_ERR_CORRUPT if the history has no square table of numbers. */
dt_status dt_confusion_add(dt_strbuf *out, const dt_term *term, const dt_store_confusion *of,
                           dt_arena *arena, dt_error *err);
/* [{"attempt", "step", "time_ms", "counts"}]. New reference. */
json_t *dt_confusions_to_json(const dt_store_confusion *list, int64_t count);

#endif
