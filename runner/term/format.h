/* format: numbers as people read them.
 *
 * Each writes into `out` of `size` bytes (DT_FORMAT_SIZE is enough for all) and returns out, so
 * that calls nest in printf arguments. A value that is not there (NaN, negative sizes) is "-".
 */
#ifndef DT_RUNNER_TERM_FORMAT_H
#define DT_RUNNER_TERM_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_FORMAT_SIZE 32

/* 950, 12.3k, 4.56M, 1.24G: three significant digits. */
char *dt_format_count(char *out, size_t size, double value);
/* 950 B, 12.3 kB, 4.56 MB: powers of 1000, as disks and memory tables here are written. */
char *dt_format_bytes(char *out, size_t size, double bytes);
/* 12,345 */
char *dt_format_whole(char *out, size_t size, int64_t value);
/* 1.8421; four digits after the point. */
char *dt_format_loss(char *out, size_t size, double value);
/* 0s, 59s, 1m02s, 3h05m: whole seconds, for what is redrawn. */
char *dt_format_seconds(char *out, size_t size, double seconds);
/* "just now", "5m ago", "3h ago", "12d ago". */
char *dt_format_ago(char *out, size_t size, int64_t then_ms, int64_t now_ms);
/* The shortest text that reads back as the same double; "nan", "inf", "-inf". */
char *dt_format_exact(char *out, size_t size, double value);

#ifdef __cplusplus
}
#endif
#endif
