/* activity: what /proc tells of a process cheaply enough to be asked every two seconds: whether it
 * gets processor time, and what it waits for where it gets none.
 *
 * Nothing here waits for the process, and nothing is kept of it but the reading before.
 */
#ifndef DT_RUNNER_AGENT_PROCESS_ACTIVITY_H
#define DT_RUNNER_AGENT_PROCESS_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct dt_process_activity {
    /* 'T', 't', 'Z' of the whole process; else 'R' where any thread runs or waits for a processor,
     * 'D' where any waits in the kernel and nothing interrupts it, 'S' where all sleep */
    char state;
    double cpu_seconds; /* of all threads, so far */
    int64_t work; /* grows with what it reads from disks or writes to them, and with every page
                     fetched */
} dt_process_activity;

/* False where there is no such process. */
bool dt_process_activity_read(dt_process_activity *out, pid_t pid);

#endif
