/* contents: the digest of a file's content, cached; and the store of contents by digest, CACHE/files.
 *
 * A file of the store never changes, and gets its name when it is complete. Nothing runs from the store or reads it
 * while a run trains: folders are built of copies. So a content can be removed at any time; those that were used
 * last long ago are (remote_helper/cache.c, `dtrun gc`). A power loss can damage a file: users check digests.
 *
 * Threads    any, in any number of processes
 */
#ifndef DT_RUNNER_NODE_SETUP_WORKDIR_CONTENTS_H
#define DT_RUNNER_NODE_SETUP_WORKDIR_CONTENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "engine/checkpoint/digest.h"

/* content: computes and caches the digest of a file's content.
 *
 * The cache avoids reading a corpus at every launch. CACHE/digests/NAME, where NAME is a digest of the file's absolute
 * path, holds one line, "BYTES INODE DEVICE MODIFIED CHANGED DIGEST", which is valid while the file matches. CHANGED
 * (ctime) cannot be set, so that a file that was modified and got its old time back is read again. A file that changed
 * within the last two seconds is not cached, since it can change again with the same time.
 *
 * Threads    any, in any number of processes: the second one waits and uses the cached digest
 * Errors     DT_ERR_IO: the file cannot be read; DT_ERR_BUSY: cancelled. A cache that is not writable is ignored
 */

/* hex: DT_DIGEST_SIZE bytes. cache: NULL to cache nothing. cancelled and progress may be NULL; progress is called every
 * few megabytes, and while another process reads the file; it returns false to cancel. */
dt_status dt_content_digest(char *hex, const char *path, const char *cache,
                            const atomic_bool *cancelled,
                            bool (*progress)(void *context, int64_t bytes), void *context,
                            dt_error *err);

#define DT_CONTENTS_FOLDER "files"    /* in CACHE */
#define DT_WORKDIRS_FOLDER "workdirs" /* in CACHE: digests of the files of a folder (keep.c) */

void dt_contents_path(dt_strbuf *out, const char *cache, const char *digest); /* resets `out` */

/* Returns true if the content is there, and notes the use. The bytes are compared; with `read` also the digest, and a
 * damaged file is removed. */
bool dt_contents_have(const char *cache, const char *digest, int64_t bytes, bool read);

/* Returns true if the regular file `path` has this content. */
bool dt_contents_is_at(const char *path, const char *digest, int64_t bytes);

/* A content that is being written. */
typedef struct dt_content {
    dt_strbuf path; /* of the unfinished file; "": none */
    int fd;
    int64_t bytes;
    dt_digest *digest;
} dt_content;

dt_status dt_content_begin(dt_content *out, const char *cache, dt_error *err);
dt_status dt_content_add(dt_content *content, const void *bytes, size_t length, dt_error *err);
/* Gives the content its name. hex: its digest, DT_DIGEST_SIZE bytes. */
dt_status dt_content_finish(dt_content *content, char *hex, const char *cache, dt_error *err);
void dt_content_drop(
    dt_content *content); /* removes what was not finished; accepts a zeroed struct */

/* Creates the file `path`, which must not exist, with these permissions and time of change. Holes stay holes. */
dt_status dt_contents_copy(const char *path, const char *cache, const char *digest, int64_t mode,
                           int64_t time_ns, dt_error *err);
/* The same from a file. */
dt_status dt_contents_copy_file(const char *path, const char *from, int64_t mode, int64_t time_ns,
                                dt_error *err);
/* As dt_contents_copy, but the store gives its content away if both are on one file system. */
dt_status dt_contents_move(const char *path, const char *cache, const char *digest, int64_t mode,
                           int64_t time_ns, dt_error *err);

/* Writes bytes at the descriptor's position and leaves holes for blocks of zeros; dt_sparse_end makes the file end
 * there. */
dt_status dt_sparse_write(int fd, const void *bytes, size_t length, dt_error *err);
dt_status dt_sparse_end(int fd, dt_error *err);

#endif
