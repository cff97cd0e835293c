/* read_at: reads a whole range of a file, through short reads and EINTR. */
#ifndef DT_ENGINE_CHECKPOINT_READ_AT_H
#define DT_ENGINE_CHECKPOINT_READ_AT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DT_ERR_CORRUPT if the file ends too early; `where` names the file in messages. */
dt_status dt_checkpoint_read_at(void *out, size_t length, int fd, int64_t at_bytes,
                                const char *where, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
