/* kernel: finds what the kernel log says about a process that died: the out-of-memory killer, a fault, a device
 * driver.
 *
 * Source  /dev/kmsg, if readable (root, or dmesg_restrict = 0); otherwise nothing is found
 */
#ifndef DT_RUNNER_AGENT_PROCESS_KERNEL_H
#define DT_RUNNER_AGENT_PROCESS_KERNEL_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/json.h"

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

#endif
