/* resources: measures what a machine has for a run: processors, memory and disk space, within the limits of
 * control groups; finds its network interfaces.
 *
 * Memory     MemAvailable of /proc/meminfo, or the rest of the control group's limit if that is less (versions 1
 *            and 2, every level up to the root; file cache counts as free, since the kernel reclaims it)
 */
#ifndef DT_BASE_RESOURCES_H
#define DT_BASE_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cgroups: finds the control group of a process in the file system, for version 1, version 2 and both at once
 * (hybrid).
 *
 * /proc/PID/cgroup says which group a process is in, for each controller; /proc/self/mountinfo says where a
 * controller's tree is mounted, and which part of it. A container often sees only a part: its own group is then the
 * mount point.
 *
 * Tests      `root` stands in front of every path: "" for this machine, or a folder with proc/ and what is mounted
 * Ownership  results are the caller's memory
 * Threads    any
 */

#define DT_CGROUP_PATH_SIZE 4096

/* A tree of groups as it is mounted. */
typedef struct dt_cgroup_mount {
    int version;                    /* 1 or 2 */
    char part[DT_CGROUP_PATH_SIZE]; /* of the tree: "/" is all of it */
    char point[DT_CGROUP_PATH_SIZE];
} dt_cgroup_mount;

/* The group of one process, and how far up its parents can be seen. */
typedef struct dt_cgroup_place {
    int version;
    char folder[DT_CGROUP_PATH_SIZE]; /* with `root` in front */
    size_t top_bytes;                 /* length of the front of `folder` that is the mount point */
} dt_cgroup_place;

/* Sets `out` to the path of the process (0: this one) in the tree of a controller of version 1, or in that of version 2
 * if controller is NULL. False: it is in none. */
bool dt_cgroups_path(dt_strbuf *out, const char *root, pid_t pid, const char *controller);

/* Finds where the tree of that controller, or of version 2 if it is NULL, is mounted; false: nowhere. */
bool dt_cgroups_mount(dt_cgroup_mount *out, const char *root, const char *controller);

/* Returns how often the kernel killed a process of this process's memory group because a limit
 * was reached; -1: not counted. */
int64_t dt_cgroups_oom_kills(const char *root);

/* Reads the tightest memory limit of this process's groups, and what its group uses without file cache. Returns false if
 * no group has a limit. */
bool dt_cgroups_memory(int64_t *used_bytes, int64_t *limit_bytes, const char *root);
/* Reads the tightest limit of processor time, in processors, and the time that its group has used so far. Returns false
 * if no group has a limit. */
bool dt_cgroups_processors(double *used_seconds, double *processors, const char *root);

/* Returns the number of processors in this process's affinity mask. */
int64_t dt_resources_cores(void);
dt_status dt_resources_memory(int64_t *bytes, dt_error *err);
/* The same with `root` in front of /proc and the mounted groups, for tests. */
dt_status dt_resources_memory_in(int64_t *bytes, const char *root, dt_error *err);
/* Returns the bytes free for this user on the file system of `path`. */
dt_status dt_resources_disk(int64_t *bytes, const char *path, dt_error *err);

/* interface: finds a network interface of this machine by its address. */

#define DT_INTERFACE_SIZE 64

/* Writes the name of the interface with this numeric IPv4 or IPv6 address. Returns false if there is none. */
bool dt_interface_name(char out[DT_INTERFACE_SIZE], const char *address);

#ifdef __cplusplus
}
#endif

#endif
