/* durations: what is written as words about time. */
#ifndef DT_RECIPES_DURATIONS_H
#define DT_RECIPES_DURATIONS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds from a number or "90s", "10m", "2h", "1d". */
bool dt_text_duration(double *seconds, const char *text);

/* `failure.launcher_lost`: 0 for "continue", the time of "stop_after 10m". False for anything
 * else, and for a time that no agent takes. */
#define DT_LAUNCHER_LOST_MAX_SECONDS (3650 * 86400.0)
bool dt_launcher_lost_seconds(double *seconds, const char *text);

#ifdef __cplusplus
}
#endif
#endif
