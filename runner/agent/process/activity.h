/* activity: reads from /proc whether a process gets processor time, and what it waits for if not; cheap enough
 * to be called every two seconds.
 *
 * Nothing here waits for the process.
 */
#ifndef DT_RUNNER_AGENT_PROCESS_ACTIVITY_H
#define DT_RUNNER_AGENT_PROCESS_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct dt_process_activity {
    /* 'T', 't' or 'Z' for the whole process; else 'R' if any thread runs or waits for a
     * processor, 'D' if any is in an uninterruptible wait, 'S' if all sleep */
    char state;
    double cpu_seconds; /* of all threads so far */
    int64_t work; /* grows with its disk reads and writes, and with every page fetched from disk */
} dt_process_activity;

/* Reads the activity of a process from /proc. Returns false if there is no such process. */
bool dt_process_activity_read(dt_process_activity *out, pid_t pid);

/* Reads the activity of a process and its descendants: 'T' if one of them is stopped, and processor time with that of
 * children that have ended. *telling: the process whose state tells most, the stopped one, else the one that used
 * most processor time. Returns false if there is no such process. */
bool dt_process_activity_read_tree(dt_process_activity *out, pid_t *telling, pid_t root);

#endif
