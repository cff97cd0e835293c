/* cgroup: a control group (version 2) for the ranks of a run on this node.
 *
 * It is made below the agent's own, where that is allowed (root, or a delegated subtree). Nothing
 * but the ranks is ever put into it, and a rank puts itself in before it becomes the engine: what
 * it starts is in it too, whatever it does to its session, its parent or its environment. No
 * controller is enabled, so the rule that a group has processes or passes on controllers holds.
 *
 * Ownership  init/release; release leaves the group itself alone
 * Errors     DT_ERR_UNSUPPORTED with the reason: not available here, other means are used
 */
#ifndef DT_RUNNER_AGENT_PROCESS_CGROUP_H
#define DT_RUNNER_AGENT_PROCESS_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

typedef struct dt_cgroup {
    char *folder;  /* of the file system: "/sys/fs/cgroup/user.slice/.../dtrun-a-1-0-77" */
    char *inside;  /* as /proc/PID/cgroup has it; NULL: there is no group */
    char *parents; /* folder of the agent's own group */
    int procs;     /* its cgroup.procs, for a child to write "0" to; -1: none */
} dt_cgroup;

void dt_cgroup_init(dt_cgroup *cgroup);
void dt_cgroup_release(dt_cgroup *cgroup);

/* name: letters, digits, "-", "_" and "."; anything else becomes "_". */
dt_status dt_cgroup_make(dt_cgroup *out, const char *name, dt_error *err);

/* One that an agent before us made; folder as it was then. */
dt_status dt_cgroup_adopt(dt_cgroup *out, const char *folder, dt_error *err);

/* Whether the process is in the group, or in one below it. */
bool dt_cgroup_holds(const char *inside, pid_t pid);

/* SIGKILL to everything in it, at once; nothing where the kernel has no cgroup.kill (before 5.14).
 */
void dt_cgroup_kill(const dt_cgroup *cgroup);

/* Processes that the kernel killed for memory: in the group where it counts them, else in the
 * agent's own memory group (of version 1 or 2), where the ranks are too; -1: not counted. */
int64_t dt_cgroup_oom_kills(const dt_cgroup *cgroup);

/* Removes it and what the ranks made below. False where something is still in it. */
bool dt_cgroup_remove(const dt_cgroup *cgroup);

#endif
