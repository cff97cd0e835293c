/* describe: what the kernel tells about a process: how busy it is, what it waits for, why it was killed.
 *
 * Files that are not readable are left out (only root may read the kernel stack). Nothing here waits for the
 * process: its command line and environment, which could block, are not read.
 */
#ifndef DT_RUNNER_AGENT_PROCESS_DESCRIBE_H
#define DT_RUNNER_AGENT_PROCESS_DESCRIBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"
#include "runner/agent/process/process.h"

/* activity: reads from /proc whether a process gets processor time, and what it waits for if not; cheap enough
 * to be called every two seconds.
 *
 * Nothing here waits for the process.
 */

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

/* kernel: finds what the kernel log says about a process that died: the out-of-memory killer, a fault, a device
 * driver.
 *
 * Source  /dev/kmsg, if readable (root, or dmesg_restrict = 0); otherwise nothing is found
 */

#define DT_KERNEL_LINES 8

/* Opens the log at its end; returns a file descriptor that the caller closes, or -1 if it is not
 * readable. Opened just before a process starts, it has no line about an earlier process with
 * the same pid. Time stamps could not tell, because the log's clock differs from clock_gettime:
 * by 0.3 s after 11 hours. */
int dt_kernel_log_open(void);

/* Returns a new reference: the last DT_KERNEL_LINES lines that name the process, of those added
 * since the log was opened or last read. log < 0: none. */
json_t *dt_kernel_log_lines(int log, pid_t pid);

/* True if a line names the process: "process 12 (", "pid=12,", "name[12]". */
bool dt_kernel_line_names(const char *line, pid_t pid);

/* True if the line says that the process was killed for memory. */
bool dt_kernel_line_is_oom(const char *line);

/* Appends "killed by signal 9 (SIGKILL, Killed)" or "exited with code 1" for a status of
 * waitpid. */
void dt_kernel_death_words(dt_strbuf *out, int wait_status);

#define DT_DESCRIBE_THREADS 64

/* Returns a new reference: {"pid", "state": "D", "state_words", "wchan", "cpu_seconds" (used so
 * far), "thread_count", "threads": [{"tid", "name", "state", "wchan", "syscall" (number and
 * arguments), "kernel_stack": [..]}]}, with the first DT_DESCRIBE_THREADS threads. */
json_t *dt_process_describe(pid_t pid);

/* Returns a new reference, for a process that is about to be ended: {"state", "words": "slept" (its first thread),
 * "suspicion": 0 (waits for something) to 4 (stopped), "wchan"}. */
json_t *dt_process_describe_briefly(pid_t pid);
/* Returns whether the process handles the signal itself. */
bool dt_process_handles(pid_t pid, int number);

#endif
