/* io: declares the system calls through which a checkpoint is written.
 *
 * They are in a struct so that a test can count them, make the Nth fail, or kill the process there. The
 * order of these calls is what makes a killed save harmless.
 */
#ifndef DT_ENGINE_CHECKPOINT_IO_INT_H
#define DT_ENGINE_CHECKPOINT_IO_INT_H

#include <sys/types.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each is like the system call of its name: on failure it returns -1 and sets errno. */
typedef struct dt_checkpoint_io {
    void *self;
    int (*make_dir)(void *self, const char *path, mode_t mode);
    int (*open)(void *self, const char *path, int flags, mode_t mode);
    ssize_t (*write)(void *self, int fd, const void *bytes, size_t length);
    int (*sync)(void *self, int fd);
    int (*close)(void *self, int fd);
    int (*rename)(void *self, const char *from, const char *to);
} dt_checkpoint_io;

extern const dt_checkpoint_io dt_checkpoint_io_system;

/* Open, sync and close a directory. DT_ERR_IO naming it. */
dt_status dt_checkpoint_io_sync_dir(const dt_checkpoint_io *io, const char *path, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
