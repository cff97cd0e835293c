/* formats: writes the results of smoke tests.
 *
 *   TAP        version 14: one line a check as soon as it is known, the plan at the end
 *   JUnit XML  one suite a recipe, one case a check; code hosts show it with a change
 *   JSON       {"recipe", "good", "seconds", "folder", "checks": [{"check", "promise", "verdict",
 *              "figure", "seconds"}]}
 */
#ifndef DT_SMOKE_FORMATS_H
#define DT_SMOKE_FORMATS_H

#include "base/json.h"
#include "runner/smoke/smoke.h"
#include "runner/term/term.h"

/* "good", "failed", "skipped". */
const char *dt_smoke_verdict_name(dt_smoke_verdict verdict);

void dt_smoke_add_line(dt_strbuf *out, const dt_term *term, const dt_smoke_result *result);
void dt_smoke_add_tap(dt_strbuf *out, int64_t number, const char *recipe,
                      const dt_smoke_result *result);
void dt_smoke_add_junit(dt_strbuf *out, const dt_smoke_report *reports, size_t count);
/* New reference. */
json_t *dt_smoke_to_json(const dt_smoke_report *report);

#endif
