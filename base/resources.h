/* resources: what this machine can give a run: processors, memory, disk.
 *
 * Memory     MemAvailable of /proc/meminfo, or what the control group still allows where that is
 *            less (versions 1 and 2, every level up to the root; file cache counts as free, since
 *            the kernel gives it back)
 */
#ifndef DT_BASE_RESOURCES_H
#define DT_BASE_RESOURCES_H

#include <stdint.h>

#include "base/error.h"

/* Processors that this process may run on. */
int64_t dt_resources_cores(void);
dt_status dt_resources_memory(int64_t *bytes, dt_error *err);
/* The same of a folder with proc/ and the mounted groups, for tests. */
dt_status dt_resources_memory_in(int64_t *bytes, const char *root, dt_error *err);
/* Free on the file system of `path`, for this user. */
dt_status dt_resources_disk(int64_t *bytes, const char *path, dt_error *err);

#endif
