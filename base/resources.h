/* resources: measures the processors, memory and disk space available to a run on this machine.
 *
 * Memory     MemAvailable of /proc/meminfo, or the rest of the control group's limit if that is less (versions 1
 *            and 2, every level up to the root; file cache counts as free, since the kernel reclaims it)
 */
#ifndef DT_BASE_RESOURCES_H
#define DT_BASE_RESOURCES_H

#include <stdint.h>

#include "base/error.h"

/* Returns the number of processors in this process's affinity mask. */
int64_t dt_resources_cores(void);
dt_status dt_resources_memory(int64_t *bytes, dt_error *err);
/* The same with `root` in front of /proc and the mounted groups, for tests. */
dt_status dt_resources_memory_in(int64_t *bytes, const char *root, dt_error *err);
/* Returns the bytes free for this user on the file system of `path`. */
dt_status dt_resources_disk(int64_t *bytes, const char *path, dt_error *err);

#endif
