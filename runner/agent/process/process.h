/* process: finds the processes that belong to this node's part of a run, in /proc.
 *
 * A process belongs to the run if it descends from the agent (which is the subreaper of its descendants, so
 * a process that called setsid and lost its parent returns to it), if its environment has the mark that the agent
 * gave its ranks, or if it is in the run's cgroup (cgroup.h). Names are never used.
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

#endif
