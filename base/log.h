/* log: lines on stderr for the people who run the long-lived processes (supervisor, agent,
 * engine, page). Commands speak through their own output instead.
 *
 * A line is "2026-11-21T09:50:00.123Z info engine[3]: text". The level is taken from DTRUN_LOG
 * (error, warn, info, debug), info where it is unset.
 * Threads  any; a line is one write
 */
#ifndef DT_BASE_LOG_H
#define DT_BASE_LOG_H

#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_log_level { DT_LOG_ERROR, DT_LOG_WARN, DT_LOG_INFO, DT_LOG_DEBUG } dt_log_level;

/* Once, before any thread: who speaks ("agent", "engine[0]"); the text is copied. */
void dt_log_init(const char *who);
/* Where stderr is this file, it is renamed to PATH.1 and begun anew once it is over `most_bytes`: the
 * two hold the newest lines. Once, before any thread; of another stderr nothing changes. */
void dt_log_bound(const char *path, int64_t most_bytes);
#define DT_LOG_BYTES_MOST ((int64_t)16 << 20)
void dt_log_write(dt_log_level level, const char *fmt, ...) DT_PRINTF(2, 3);

#define dt_log_error(...) dt_log_write(DT_LOG_ERROR, __VA_ARGS__)
#define dt_log_warn(...)  dt_log_write(DT_LOG_WARN, __VA_ARGS__)
#define dt_log_info(...)  dt_log_write(DT_LOG_INFO, __VA_ARGS__)
#define dt_log_debug(...) dt_log_write(DT_LOG_DEBUG, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
