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
#ifndef DT_BASE_CGROUPS_H
#define DT_BASE_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/strbuf.h"

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

/* Finds the group of this process for a controller: in version 1 if the controller is mounted
 * there, else in version 2. False: neither can be seen. */
bool dt_cgroups_find(dt_cgroup_place *out, const char *root, const char *controller);

/* Changes the folder to that of the parent group; false, and unchanged, at the mount point. */
bool dt_cgroups_up(dt_cgroup_place *place);

/* Returns how often the kernel killed a process of this process's memory group because a limit
 * was reached; -1: not counted. */
int64_t dt_cgroups_oom_kills(const char *root);

#endif
