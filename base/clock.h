/* clock: reads the wall and the monotonic clock, and formats times.
 *
 * Units  _ms are milliseconds since 1970 (wall clock, may jump); _seconds of dt_clock_monotonic
 *        only make sense as differences
 */
#ifndef DT_BASE_CLOCK_H
#define DT_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t dt_clock_wall_ms(void);
double dt_clock_monotonic_seconds(void);
void dt_clock_sleep_seconds(double seconds);

#define DT_CLOCK_ISO_SIZE 32
/* Writes "2026-11-21T09:50:00.123Z" to `out` (DT_CLOCK_ISO_SIZE bytes); returns `out`. */
char *dt_clock_iso(char *out, int64_t wall_ms);

/* Writes a short duration, "1h02m", "3m05s", "12.4s" or "850ms", to `out`; returns `out`. */
char *dt_clock_duration(char *out, size_t size, double seconds);

#ifdef __cplusplus
}
#endif
#endif
