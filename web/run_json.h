/* run_json: formats a run as JSON for the API, in one place, so that lists and views agree.
 *
 * Unknown values are null. Strings from outside pass through base/display.h.
 */
#ifndef DT_WEB_RUN_JSON_H
#define DT_WEB_RUN_JSON_H

#include "base/json.h"
#include "store/activity.h"

/* Returns a new reference; NULL if out of memory. */
json_t *dt_web_run_json(const dt_run *run, const dt_activity *activity, int64_t now_ms);
/* Returns the newest speed of a run that is making steps or has made its last; NaN while it cannot make steps. */
double dt_web_speed(const dt_run *run, const dt_activity *activity);

/* Estimates the remaining seconds from the pace of the newest attempt, which began at start_step; NaN if unknown. */
double dt_web_eta_seconds(const dt_run *run, const dt_activity *activity, int64_t start_step,
                          int64_t now_ms);

/* Returns false for kinds of events that have their own view (curves, logs). */
bool dt_web_event_is_shown(const char *kind);
json_t *dt_web_event_json(const dt_store_event *event);        /* new reference */
json_t *dt_web_log_line_json(const char *line, size_t length); /* "TIME TEXT"; likewise */

json_t *dt_web_text_json(const char *bytes, size_t length);
json_t *dt_web_string_json(const char *text); /* NULL gives "" */
json_t *dt_web_value_json(json_t *value);     /* steals `value`; makes its strings safe to show */
json_t *dt_web_time_json(int64_t ms);         /* 0 gives null */
/* Appends a number that reads back as a real; null if it is not finite. */
void dt_web_add_real(dt_strbuf *out, double value);

#endif
