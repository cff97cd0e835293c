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

/* Returns "stopped by a signal" for 'T'. */
const char *dt_process_state_words(char state);

#endif
