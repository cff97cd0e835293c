/* log: writes log lines of the long-lived processes (supervisor, agent, engine, page) to stderr. Commands do not log.
 *
 * A line is "2026-11-21T09:50:00.123Z info engine[3]: text". DTRUN_LOG sets the level (error, warn, info, debug);
 * default: info.
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

/* Sets the name of the process in log lines ("agent", "engine[0]"; copied). Call once, before any thread. */
void dt_log_init(const char *who);
/* Rotates the log: if stderr is this file, renames it to PATH.1 and starts a new file once it exceeds `most_bytes`.
 * Does nothing if stderr is another file. Call once, before any thread. */
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
