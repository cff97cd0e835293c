/* content: the digest of what a file holds, remembered.
 *
 * A corpus is read once, not at every launch. CACHE/digests/NAME, NAME being a digest of the
 * file's absolute path, holds one line, "BYTES INODE DEVICE MODIFIED CHANGED DIGEST": believed as
 * long as the file is all of these. CHANGED (ctime) cannot be set by anybody: a file that was
 * written to and given its old time is read again. What was changed within the last two seconds is
 * not remembered: it may change once more without another time to show for it.
 *
 * Threads    any, and any number of processes: who comes second waits and finds it remembered
 * Errors     DT_ERR_IO: the file cannot be read; DT_ERR_BUSY: cancelled. A cache that cannot be
 *            written to is none
 */
#ifndef DT_RUNNER_NODE_SETUP_TRANSFER_CONTENT_H
#define DT_RUNNER_NODE_SETUP_TRANSFER_CONTENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/checkpoint/digest.h"

/* hex: room for DT_DIGEST_SIZE. cache: NULL to remember nothing. cancelled and progress may be
 * NULL; progress is called for every few megabytes, and while another reads the file; false ends it
 * as `cancelled` does. */
dt_status dt_content_digest(char *hex, const char *path, const char *cache,
                            const atomic_bool *cancelled,
                            bool (*progress)(void *context, int64_t bytes), void *context,
                            dt_error *err);

#endif
