/* copy: a checkpoint as the beginning of another run.
 *
 * Its files are shared by hard links where the file system has them (nobody ever writes to one), else
 * copied; its index is written anew, as of attempt 0 of that run: everything that the run saves itself
 * is newer. A directory that is not whole is not taken for a checkpoint, as after a killed save.
 */
#ifndef DT_ENGINE_CHECKPOINT_COPY_H
#define DT_ENGINE_CHECKPOINT_COPY_H

#include "base/arena.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Below `parent`, which is made; *path and *digest (of its index) live in the arena. One that is
 * removed meanwhile is DT_ERR_IO. */
dt_status dt_checkpoint_copy(const char **path, const char **digest, const char *from,
                             const char *parent, const char *run, dt_arena *arena, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
