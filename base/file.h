/* file: reading and writing files so that a crash leaves the old one or the new one.
 *
 * Errors  DT_ERR_IO with the path and the reason; DT_ERR_NOT_FOUND where the file is not there;
 *         DT_ERR_BUSY from dt_file_lock
 */
#ifndef DT_BASE_FILE_H
#define DT_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whole file into `out` (reset first). DT_ERR_UNSUPPORTED where it is over max_bytes; DT_ERR_IO where
 * it is no regular file, but for a pipe that this process was started with ("/dev/stdin"). */
dt_status dt_file_read(dt_strbuf *out, const char *path, size_t max_bytes, dt_error *err);
/* All that comes until the end; `name` is for messages. */
dt_status dt_file_read_fd(dt_strbuf *out, int fd, const char *name, size_t max_bytes,
                          dt_error *err);

/* Temporary name beside it → fsync → rename → fsync of the directory. */
dt_status dt_file_write_atomic(const char *path, const void *bytes, size_t length, mode_t mode,
                               dt_error *err);

/* Gives a file that is complete and synced its final name, in the same directory, and syncs that. With `replace`
 * false it takes the place of nothing (DT_ERR_BUSY), and after a failure nothing has the name. */
dt_status dt_file_name(const char *from, const char *to, bool replace, dt_error *err);

/* All of it, through short writes and EINTR. */
dt_status dt_file_write_all(int fd, const void *bytes, size_t length, dt_error *err);

/* Makes the directory and its parents; good where it is already there. */
dt_status dt_file_make_dirs(const char *path, mode_t mode, dt_error *err);
dt_status dt_file_sync_dir(const char *path, dt_error *err);

/* Removes a file or a whole directory tree; good where it is not there. Follows no link. Where something
 * cannot be removed the rest goes all the same, and the first failure is returned. */
dt_status dt_file_remove_tree(const char *path, dt_error *err);

bool dt_file_exists(const char *path);

/* An exclusive flock on `path`, made where missing; *fd is the caller's to close, which unlocks.
 * DT_ERR_BUSY at once where another process holds it; a link is refused. The descriptor is
 * close-on-exec. */
dt_status dt_file_lock(int *fd, const char *path, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
