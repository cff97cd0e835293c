/* tool: runs one of Slurm's programs, and returns its output.
 *
 * Errors  DT_ERR_UNSUPPORTED: the program is missing; DT_ERR_IO: it failed, with the last line of its stderr;
 *         DT_ERR_TIMEOUT
 * Threads any
 */
#ifndef DT_SLURM_TOOL_H
#define DT_SLURM_TOOL_H

#include "base/error.h"
#include "base/strbuf.h"

#define DT_SLURM_TOOL_SECONDS 30.0 /* Slurm itself waits 10 s for an absent controller */

/* input: its stdin (NULL: empty); answer: its whole stdout (NULL: ignored). */
dt_status dt_slurm_tool(dt_strbuf *answer, const char *const *argv, const char *input,
                        dt_error *err);

#endif
