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
#ifndef DT_RUNNER_NODE_SETUP_TRANSFER_CONTENT_H
#define DT_RUNNER_NODE_SETUP_TRANSFER_CONTENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/checkpoint/digest.h"

/* hex: DT_DIGEST_SIZE bytes. cache: NULL to cache nothing. cancelled and progress may be NULL; progress is called every
 * few megabytes, and while another process reads the file; it returns false to cancel. */
dt_status dt_content_digest(char *hex, const char *path, const char *cache,
                            const atomic_bool *cancelled,
                            bool (*progress)(void *context, int64_t bytes), void *context,
                            dt_error *err);

#endif
