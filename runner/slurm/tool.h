/* tool: one of Slurm's own programs, and what it answers.
 *
 * Errors  DT_ERR_UNSUPPORTED where it is not on this machine; DT_ERR_IO with the last line of its
 *         stderr where it failed; DT_ERR_TIMEOUT
 * Threads any
 */
#ifndef DT_SLURM_TOOL_H
#define DT_SLURM_TOOL_H

#include "base/error.h"
#include "base/strbuf.h"

#define DT_SLURM_TOOL_SECONDS 30.0 /* Slurm itself asks an absent controller for 10 s */

/* stdin (NULL: empty), whole stdout (NULL: not wanted). */
dt_status dt_slurm_tool(dt_strbuf *answer, const char *const *argv, const char *input,
                        dt_error *err);

#endif
