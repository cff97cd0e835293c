/* process: which processes belong to this node's part of a run, from /proc.
 *
 * A process belongs where it descends from the agent (which is the reaper of its descendants, so
 * that one that called setsid and lost its parent comes back to it), or where its environment
 * carries the mark that the agent gave its ranks, or where it is in the run's cgroup (cgroup.h).
 * Never by name.
 *
 * Identity  (pid, start time in clock ticks since boot): a pid that was used again is another
 *           process and is left alone
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
    int64_t cpu_ticks;    /* processor time used by all its threads, user and system */
    int64_t major_faults; /* pages that had to come from a disk */
    char state;           /* as in /proc/PID/stat: of its first thread */
    char command[17];     /* its short name */
    bool ours;
} dt_process;

/* False where there is no such process. */
bool dt_process_read(dt_process *out, pid_t pid);

/* Living ones, zombies left out; the caller frees *out. mark: "NAME=value"; cgroup: its path as in
 * /proc/PID/cgroup, NULL where there is none. */
dt_status dt_process_find(dt_process **out, size_t *count, pid_t ancestor, const char *mark,
                          const char *cgroup, dt_error *err);

/* False where the process is gone, or the pid is another's by now. */
bool dt_process_signal(pid_t pid, int64_t start_ticks, int number);

#endif
