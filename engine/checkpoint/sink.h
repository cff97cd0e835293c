/* sink: a new file that is written once, front to back, digested on the way, and synced.
 *
 * It goes past the page cache where the file system allows it: nobody reads a checkpoint soon, and
 * a page of the cache costs the kernel several times what a copy within the process does, on the
 * processors that train (docs/performance.md).
 *
 * Errors  DT_ERR_IO naming the file; a full disk says so and what to do
 */
#ifndef DT_ENGINE_CHECKPOINT_SINK_H
#define DT_ENGINE_CHECKPOINT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/checkpoint/digest.h"
#include "engine/checkpoint/io_int.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_checkpoint_sink {
    const dt_checkpoint_io *io;
    const char *path; /* borrowed */
    int fd;
    int64_t bytes; /* so far */
    char *block;   /* gathered for one write */
    size_t held;   /* bytes of it */
    bool direct;   /* past the page cache just now */
    bool cached;   /* never past it (again) */
    dt_digest *digest;
} dt_checkpoint_sink;

/* The file must not be there yet. */
dt_status dt_checkpoint_sink_open(dt_checkpoint_sink *out, const dt_checkpoint_io *io,
                                  const char *path, dt_error *err);
dt_status dt_checkpoint_sink_write(dt_checkpoint_sink *sink, const void *bytes, size_t length,
                                   dt_error *err);
/* Syncs, closes; hex may be NULL. */
dt_status dt_checkpoint_sink_finish(dt_checkpoint_sink *sink, char *hex, dt_error *err);
/* After a failure or after finish; accepts one that was only zeroed. */
void dt_checkpoint_sink_release(dt_checkpoint_sink *sink);

/* A whole small file. */
dt_status dt_checkpoint_sink_put(const dt_checkpoint_io *io, const char *path, const void *bytes,
                                 size_t length, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
