/* contents: stores the contents of files by digest, in CACHE/files/DIGEST.
 *
 * A file of the store never changes, and gets its name when it is complete. Nothing runs from the store or reads it
 * while a run trains: folders are built of copies. So a content can be removed at any time; those that were used
 * last long ago are (remote_helper/prune.c, `dtrun gc`). A power loss can damage a file: users check digests.
 *
 * Threads    any, in any number of processes
 */
#ifndef DT_NODE_SETUP_WORKDIR_CONTENTS_H
#define DT_NODE_SETUP_WORKDIR_CONTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "engine/checkpoint/digest.h"

#define DT_CONTENTS_FOLDER "files" /* in CACHE */

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
