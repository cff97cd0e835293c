/* spawn: starts one rank as a process, with pipes to the agent.
 *
 * The child leads its own session, has the channel as descriptor 3, pipes as stdout and stderr, /dev/null as
 * stdin, default signal handling, and dies with the agent (PR_SET_PDEATHSIG), so no rank runs without an agent.
 *
 * Ownership  the caller closes the three descriptors
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
    int cgroup_procs; /* cgroup.procs of the group that the child joins if allowed; -1: none */
    mode_t mask;      /* umask of the child */
} dt_spawn_place;

dt_status dt_spawn(dt_spawned *spawned, char *const *argv, char *const *environment,
                   const dt_spawn_place *place, dt_error *err);

#endif
