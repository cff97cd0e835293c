/* log_tail: the last lines of a file, without reading the rest or holding what was read.
 *
 * Looks backwards in blocks, at most DT_LOG_TAIL_BYTES; a last line that has no line feed yet is
 * still being written and is left out.
 * Errors  DT_ERR_IO; a file that is not there has no lines
 */
#ifndef DT_WEB_LOG_TAIL_H
#define DT_WEB_LOG_TAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

#define DT_LOG_TAIL_BYTES ((int64_t)1 << 20)

typedef struct dt_web_log_tail {
    int fd;          /* -1: no file */
    int64_t at, end; /* of the lines, from the next one on */
} dt_web_log_tail;

/* Up to `lines` last lines of the first `valid_bytes` of the file (0: of all of it). */
dt_status dt_web_log_tail_open(dt_web_log_tail *out, const char *path, int64_t lines,
                               int64_t valid_bytes, dt_error *err);
/* Adds whole lines, each with its line feed: about `bytes`, at least one. *more: there are others.
 */
dt_status dt_web_log_tail_next(dt_web_log_tail *tail, dt_strbuf *out, size_t bytes, bool *more,
                               dt_error *err);
void dt_web_log_tail_close(dt_web_log_tail *tail);

#endif
