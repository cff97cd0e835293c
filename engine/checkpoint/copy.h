/* copy: copies a checkpoint to be the start of another run.
 *
 * Files are hard-linked if the file system can (nothing ever writes to them), else copied. The index is
 * rewritten as attempt 0 of the new run, so that every checkpoint that this run saves is newer. An
 * interrupted copy leaves an incomplete directory, which readers ignore.
 */
#ifndef DT_ENGINE_CHECKPOINT_COPY_H
#define DT_ENGINE_CHECKPOINT_COPY_H

#include "base/arena.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copy `from` below `parent`, which is created. *path and *digest (of its index) are in the arena.
 * DT_ERR_IO if the source is removed meanwhile. */
dt_status dt_checkpoint_copy(const char **path, const char **digest, const char *from,
                             const char *parent, const char *run, dt_arena *arena, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
