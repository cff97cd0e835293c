/* kernel: what the kernel's log says about a process that died: its out-of-memory killer, a fault,
 * a device driver.
 *
 * Source  /dev/kmsg, where it may be read (root, or dmesg_restrict = 0); else nothing is found
 */
#ifndef DT_RUNNER_AGENT_PROCESS_KERNEL_H
#define DT_RUNNER_AGENT_PROCESS_KERNEL_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/json.h"

#define DT_KERNEL_LINES 8

/* New reference: the last DT_KERNEL_LINES lines that name the process, written since then (the
 * clock of dt_clock_monotonic_seconds), so that an older process with this pid is not meant. */
json_t *dt_kernel_lines(pid_t pid, double since_seconds);

/* Whether a line names the process: "process 12 (", "pid=12,", "name[12]". */
bool dt_kernel_line_names(const char *line, pid_t pid);

/* Whether it says that the process was killed for memory. */
bool dt_kernel_line_is_oom(const char *line);

/* "killed by signal 9 (SIGKILL, Killed)", "exited with code 1", of a status of waitpid. */
void dt_kernel_death_words(dt_strbuf *out, int wait_status);

#endif
