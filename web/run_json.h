/* run_json: a run as the API shows it, in one place, so that lists and views agree.
 *
 * What is not known yet is null. Strings from outside pass base/display.h.
 */
#ifndef DT_WEB_RUN_JSON_H
#define DT_WEB_RUN_JSON_H

#include "base/json.h"
#include "store/activity.h"

/* New reference; NULL without memory. */
json_t *dt_web_run_json(const dt_run *run, const dt_activity *activity, int64_t now_ms);
/* The newest speed of a run that makes steps, or made its last; NaN while no step can come. */
double dt_web_speed(const dt_run *run, const dt_activity *activity);

/* Seconds that the run will still take at the pace of its newest attempt, which began at
 * start_step; NaN where that cannot be said. */
double dt_web_eta_seconds(const dt_run *run, const dt_activity *activity, int64_t start_step,
                          int64_t now_ms);

/* Events that have a view of their own (curves, logs) are not shown as such. */
bool dt_web_event_is_shown(const char *kind);
json_t *dt_web_event_json(const dt_store_event *event);        /* new reference */
json_t *dt_web_log_line_json(const char *line, size_t length); /* "TIME TEXT"; likewise */

json_t *dt_web_text_json(const char *bytes, size_t length);
json_t *dt_web_string_json(const char *text); /* "" where NULL */
json_t *dt_web_value_json(json_t *value);     /* takes it: with all strings in it made fit */
json_t *dt_web_time_json(int64_t ms);         /* null where 0 */
/* As JSON that keeps a real one; null where it is not finite. */
void dt_web_add_real(dt_strbuf *out, double value);

#endif
