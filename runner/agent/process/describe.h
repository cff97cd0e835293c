/* describe: what the kernel says about a process that seems to hang, from /proc.
 *
 * What may not be read (the kernel's stack is root's alone) is left out. Nothing here waits for
 * the process: its command line and environment, which do, are not read.
 */
#ifndef DT_RUNNER_AGENT_PROCESS_DESCRIBE_H
#define DT_RUNNER_AGENT_PROCESS_DESCRIBE_H

#include "base/json.h"
#include "runner/agent/process/process.h"

#define DT_DESCRIBE_THREADS 64

/* New reference: {"pid", "state": "D", "state_words", "wchan", "cpu_seconds" (used so far),
 * "thread_count", "threads": [{"tid", "name", "state", "wchan", "syscall" (number and arguments),
 * "kernel_stack": [..]}]}, the first DT_DESCRIBE_THREADS of them. */
json_t *dt_process_describe(pid_t pid);

/* "stopped by a signal" for 'T'. */
const char *dt_process_state_words(char state);

#endif
