/* file: reads files, writes them so that a crash leaves either the old or the new file, and computes the
 * checksum of records in files.
 *
 * Errors  DT_ERR_IO with the path and the reason; DT_ERR_NOT_FOUND for a missing file; DT_ERR_BUSY
 *         from dt_file_lock
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

/* Reads the whole file into `out` (reset first). DT_ERR_UNSUPPORTED: larger than max_bytes; DT_ERR_IO: not a regular
 * file, nor a pipe that this process inherited ("/dev/stdin"). */
dt_status dt_file_read(dt_strbuf *out, const char *path, size_t max_bytes, dt_error *err);
/* Reads until end of file; `name` is used in messages. */
dt_status dt_file_read_fd(dt_strbuf *out, int fd, const char *name, size_t max_bytes,
                          dt_error *err);

/* Writes to a temporary name in the same directory, then fsync, rename, and fsync of the directory. */
dt_status dt_file_write_atomic(const char *path, const void *bytes, size_t length, mode_t mode,
                               dt_error *err);

/* Renames a complete and synced file to its final name in the same directory, and syncs the directory. With `replace`
 * false fails with DT_ERR_BUSY if `to` exists; after any other failure `to` does not exist. */
dt_status dt_file_name(const char *from, const char *to, bool replace, dt_error *err);

/* Writes all bytes, repeating after short writes and EINTR. */
dt_status dt_file_write_all(int fd, const void *bytes, size_t length, dt_error *err);

/* Creates the directory and its parents; succeeds if it exists. */
dt_status dt_file_make_dirs(const char *path, mode_t mode, dt_error *err);
dt_status dt_file_sync_dir(const char *path, dt_error *err);

/* Removes a file or a directory tree; succeeds if it does not exist. Does not follow links. If something cannot be
 * removed, still removes the rest, and returns the first failure. */
dt_status dt_file_remove_tree(const char *path, dt_error *err);

bool dt_file_exists(const char *path);

/* Takes an exclusive flock on `path`, which is created if missing. The caller closes *fd, which unlocks.
 * DT_ERR_BUSY, without waiting, if another process holds the lock. Refuses a symbolic link. The descriptor is
 * close-on-exec. */
dt_status dt_file_lock(int *fd, const char *path, dt_error *err);

/* crc32c: computes the Castagnoli CRC (polynomial 0x1EDC6F41, reflected; RFC 3720) that frames the records of
 * TensorBoard's event files.
 */

/* Returns the masked CRC, as stored in TFRecord files. The mask keeps a CRC of data that itself contains CRCs
 * meaningful. */
uint32_t dt_crc32c_masked(const void *bytes, size_t length);

#ifdef __cplusplus
}
#endif

#endif
