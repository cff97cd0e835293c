/* top: shows a live table of all runs, and one of them in the whole terminal.
 *
 * Reads once a second; the store may be moved or replaced while it runs. Read errors are shown in the last line,
 * below the data that was read before.
 */
#ifndef DT_RUNNER_TOP_TOP_H
#define DT_RUNNER_TOP_TOP_H

#include "runner/cli/command.h"
#include "runner/top/rows.h"

/* Runs until the user quits. open: a run to show first, or NULL. Without a terminal, or with
 * --json, prints the rows once. */
dt_status dt_top(const char *open, const dt_top_wish *wish, dt_call *call, dt_error *err);

#endif
