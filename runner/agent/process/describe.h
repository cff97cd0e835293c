/* describe: reads from /proc what a process that seems to hang is doing.
 *
 * Files that are not readable are left out (only root may read the kernel stack). Nothing here waits for the
 * process: its command line and environment, which could block, are not read.
 */
#ifndef DT_RUNNER_AGENT_PROCESS_DESCRIBE_H
#define DT_RUNNER_AGENT_PROCESS_DESCRIBE_H

#include "base/json.h"
#include "runner/agent/process/process.h"

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

/* Returns "stopped by a signal" for 'T'. */
const char *dt_process_state_words(char state);

#endif
