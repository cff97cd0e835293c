/* log_tail: the last lines of a file, without reading the rest.
 *
 * Reads backwards in blocks, at most DT_LOG_TAIL_BYTES; a last line that has no line feed yet is
 * still being written and is left out.
 * Errors  DT_ERR_IO; a file that is not there has no lines
 */
#ifndef DT_WEB_LOG_TAIL_H
#define DT_WEB_LOG_TAIL_H

#include <stdint.h>

#include "base/strbuf.h"

#define DT_LOG_TAIL_BYTES ((int64_t)1 << 20)

/* Up to `lines` last lines of the first `valid_bytes` of the file (0: of all of it) into `out`,
 * each with its line feed. */
dt_status dt_log_tail(dt_strbuf *out, const char *path, int64_t lines, int64_t valid_bytes,
                      dt_error *err);

#endif
