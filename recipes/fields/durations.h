/* durations: parses times. */
#ifndef DT_RECIPES_FIELDS_DURATIONS_H
#define DT_RECIPES_FIELDS_DURATIONS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Parses seconds, or "90s", "10m", "2h", "1d". */
bool dt_text_duration(double *seconds, const char *text);

/* `failure.launcher_lost`: 0 for "continue", the time of "stop_after 10m". False for anything else, and for a time
 * above the maximum. */
#define DT_LAUNCHER_LOST_MAX_SECONDS (3650 * 86400.0)
bool dt_launcher_lost_seconds(double *seconds, const char *text);

#ifdef __cplusplus
}
#endif
#endif
