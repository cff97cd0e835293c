/* format: writes numbers in readable form.
 *
 * Each function writes into `out` of `size` bytes (DT_FORMAT_SIZE suffices for all) and returns out, so that calls
 * can be printf arguments. A missing value (NaN, negative sizes) is "-", and
 * an infinite loss "nan".
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
/* 950 B, 12.3 kB, 4.56 MB: in powers of 1000. */
char *dt_format_bytes(char *out, size_t size, double bytes);
/* 1.8421, -0.0126, 3e-05, 240k, -8.44k: a number of any size, of a metric that can be anything. */
char *dt_format_value(char *out, size_t size, double value);
/* 12,345 */
char *dt_format_whole(char *out, size_t size, int64_t value);
/* 1.8421; four digits after the point. */
char *dt_format_loss(char *out, size_t size, double value);
/* 0s, 59s, 1m02s, 3h05m: whole seconds, for live views. */
char *dt_format_seconds(char *out, size_t size, double seconds);
/* "just now", "5m ago", "3h ago", "12d ago". */
char *dt_format_ago(char *out, size_t size, int64_t then_ms, int64_t now_ms);
/* The shortest text that reads back as the same double; "nan", "inf", "-inf". */
char *dt_format_exact(char *out, size_t size, double value);

#ifdef __cplusplus
}
#endif
#endif
