/* sink: writes a new file once, front to back, computes its digest, and syncs it.
 *
 * Writes bypass the page cache if the file system allows it: a checkpoint is not read soon, and
 * a page of the cache costs the kernel several times what a copy within the process does, on the
 * processors that train (docs/notes/training.md).
 *
 * Errors  DT_ERR_IO naming the file; the message for a full disk has a remedy
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
    const char *path; /* path of the file, borrowed */
    int fd;
    int64_t bytes; /* bytes written so far */
    char *block;   /* collects data for one write */
    size_t held;   /* bytes in `block` */
    bool direct;   /* writes currently bypass the page cache */
    bool cached;   /* use the page cache for the rest of the file */
    dt_digest *digest;
} dt_checkpoint_sink;

/* Create the file, which must not exist. */
dt_status dt_checkpoint_sink_open(dt_checkpoint_sink *out, const dt_checkpoint_io *io,
                                  const char *path, dt_error *err);
dt_status dt_checkpoint_sink_write(dt_checkpoint_sink *sink, const void *bytes, size_t length,
                                   dt_error *err);
/* Sync and close; hex can be NULL. */
dt_status dt_checkpoint_sink_finish(dt_checkpoint_sink *sink, char *hex, dt_error *err);
/* Call after a failure or after finish; accepts a zeroed sink. */
void dt_checkpoint_sink_release(dt_checkpoint_sink *sink);

/* Write a whole small file. */
dt_status dt_checkpoint_sink_put(const dt_checkpoint_io *io, const char *path, const void *bytes,
                                 size_t length, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
