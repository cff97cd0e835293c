/* spawn: one rank as a process, with the descriptors that the agent holds of it.
 *
 * The child leads a session of its own, has the channel as descriptor 3, stdout and stderr as
 * pipes, stdin /dev/null, default signal handling, and dies with the agent (PR_SET_PDEATHSIG):
 * a rank that nobody supervises does not live on.
 *
 * Ownership  the three descriptors are the caller's to close
 * Errors     DT_ERR_IO: "cannot run '/x/dtrun-engine': No such file or directory"
 */
#ifndef DT_RUNNER_AGENT_PROCESS_SPAWN_H
#define DT_RUNNER_AGENT_PROCESS_SPAWN_H

#include <sys/types.h>

#include "base/error.h"

#define DT_SPAWN_CHANNEL_FD 3

typedef struct dt_spawned {
    pid_t pid;
    int channel, out, err;
} dt_spawned;

typedef struct dt_spawn_place {
    int cgroup_procs; /* of the group that the child joins, where it may; -1: none */
    mode_t mask;      /* umask of the child */
} dt_spawn_place;

dt_status dt_spawn(dt_spawned *spawned, char *const *argv, char *const *environment,
                   const dt_spawn_place *place, dt_error *err);

#endif
