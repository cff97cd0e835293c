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

/* The log from here on: a file descriptor that the caller closes, -1 where it may not be read. One
 * opened just before a process starts has no line about an older process with its pid; the stamps
 * of the lines would not tell, for their clock is not the one of clock_gettime: 0.3 s behind after
 * 11 hours. */
int dt_kernel_log_open(void);

/* New reference: the last DT_KERNEL_LINES lines that name the process, of what the log has said
 * since it was opened or last read. log < 0: none. */
json_t *dt_kernel_log_lines(int log, pid_t pid);

/* Whether a line names the process: "process 12 (", "pid=12,", "name[12]". */
bool dt_kernel_line_names(const char *line, pid_t pid);

/* Whether it says that the process was killed for memory. */
bool dt_kernel_line_is_oom(const char *line);

/* "killed by signal 9 (SIGKILL, Killed)", "exited with code 1", of a status of waitpid. */
void dt_kernel_death_words(dt_strbuf *out, int wait_status);

#endif
