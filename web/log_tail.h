/* log_tail: reads the last lines of a file, in constant memory and without reading the rest.
 *
 * Searches backwards in blocks, over at most DT_LOG_TAIL_BYTES. A last line without a line feed is still being written
 * and is left out.
 * Errors  DT_ERR_IO; a missing file has no lines
 */
#ifndef DT_WEB_LOG_TAIL_H
#define DT_WEB_LOG_TAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

#define DT_LOG_TAIL_BYTES ((int64_t)1 << 20)

typedef struct dt_web_log_tail {
    int fd;          /* -1: no file */
    int64_t at, end; /* offsets of the next line and of the end */
} dt_web_log_tail;

/* Finds up to `lines` last lines of the first `valid_bytes` of the file (0: of the whole file). */
dt_status dt_web_log_tail_open(dt_web_log_tail *out, const char *path, int64_t lines,
                               int64_t valid_bytes, dt_error *err);
/* Appends whole lines with their line feeds: about `bytes`, at least one line. *more: lines are left. */
dt_status dt_web_log_tail_next(dt_web_log_tail *tail, dt_strbuf *out, size_t bytes, bool *more,
                               dt_error *err);
void dt_web_log_tail_close(dt_web_log_tail *tail);

#endif
