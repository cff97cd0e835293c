/* process: finds, signals and groups the processes of a run, by (pid, start time), environment and control
 * group.
 *
 * A process belongs to the run if it descends from the agent (which is the subreaper of its descendants, so
 * a process that called setsid and lost its parent returns to it), if its environment has the mark that the agent
 * gave its ranks, or if it is in the run's cgroup (below). Names are never used.
 *
 * Identity  (pid, start time in clock ticks since boot): a reused pid is another process and is left alone
 */
#ifndef DT_RUNNER_AGENT_PROCESS_PROCESS_H
#define DT_RUNNER_AGENT_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

typedef struct dt_process {
    pid_t pid, parent;
    int64_t start_ticks;
    int64_t cpu_ticks;    /* processor time of all its threads, user and system */
    int64_t major_faults; /* pages fetched from disk */
    char state;           /* state of its first thread, as in /proc/PID/stat */
    char command[17];     /* short name */
    bool ours;
} dt_process;

/* Returns false if there is no such process. */
bool dt_process_read(dt_process *out, pid_t pid);

/* Lists the running processes of the run, without zombies; the caller frees *out. mark:
 * "NAME=value"; cgroup: its path as in /proc/PID/cgroup, or NULL. */
dt_status dt_process_find(dt_process **out, size_t *count, pid_t ancestor, const char *mark,
                          const char *cgroup, dt_error *err);

/* Returns false if the process is gone, or its pid was reused. */
bool dt_process_signal(pid_t pid, int64_t start_ticks, int number);

/* cgroup: manages a control group (version 2) for the ranks of a run on this node.
 *
 * It is created below the agent's own cgroup if that is allowed (root, or a delegated subtree). Only ranks are put
 * into it: a rank moves itself there before it execs the engine, so everything that it starts is there too,
 * whatever it does to its session, parent or environment. No controller is enabled, so the rule that a cgroup
 * either has processes or passes on controllers holds.
 *
 * Ownership  init/release; release does not remove the cgroup itself
 * Errors     DT_ERR_UNSUPPORTED with the reason: not available here, other means are used
 */

typedef struct dt_cgroup {
    char *folder;  /* path in the file system: "/sys/fs/cgroup/user.slice/.../dtrun-a-1-0-77" */
    char *inside;  /* path as in /proc/PID/cgroup; NULL: no cgroup */
    char *parents; /* folder of the agent's own cgroup */
    int procs;     /* its cgroup.procs, to which a child writes "0"; -1: none */
} dt_cgroup;

void dt_cgroup_init(dt_cgroup *cgroup);
void dt_cgroup_release(dt_cgroup *cgroup);

/* Creates the cgroup. name: letters, digits, "-", "_" and "."; other characters become "_". */
dt_status dt_cgroup_make(dt_cgroup *out, const char *name, dt_error *err);

/* Uses the cgroup of a previous agent; folder: as it was then. */
dt_status dt_cgroup_adopt(dt_cgroup *out, const char *folder, dt_error *err);

/* True if the process is in the cgroup or in one below it. */
bool dt_cgroup_holds(const char *inside, pid_t pid);

/* Sends SIGKILL to everything in it at once; does nothing if the kernel has no cgroup.kill
 * (before 5.14). */
void dt_cgroup_kill(const dt_cgroup *cgroup);

/* Returns the number of processes that the kernel killed for memory: in the cgroup if it counts
 * them, else in the agent's own memory cgroup (version 1 or 2), which contains the ranks; -1:
 * not counted. */
int64_t dt_cgroup_oom_kills(const dt_cgroup *cgroup);

/* Removes it and cgroups that the ranks made below it. Returns false if a process is still in
 * it. */
bool dt_cgroup_remove(const dt_cgroup *cgroup);

/* run_in_child: runs a function in a child process, for work that changes the current folder and has its own
 * event loop.
 *
 * Threads  the calling process must have only one thread
 */

typedef void dt_child_fn(const char *folder);

/* Waits for the child. Returns true if it exited, false if it was killed or could not be
 * started. */
bool dt_agent_run_in_child(dt_child_fn *work, const char *folder);

#endif
