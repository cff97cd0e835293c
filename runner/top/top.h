/* top: all runs at a glance, and one of them over the whole terminal.
 *
 * Reads once a second; the store may be moved or replaced meanwhile. What cannot be read is said at the foot,
 * and the last that could be stays.
 */
#ifndef DT_RUNNER_TOP_TOP_H
#define DT_RUNNER_TOP_TOP_H

#include "runner/cli/command.h"
#include "runner/top/rows.h"

/* Until somebody leaves. open: a run to begin with, or NULL. Where there is no terminal, or with --json, the
 * rows are printed once. */
dt_status dt_top(const char *open, const dt_top_wish *wish, dt_call *call, dt_error *err);

#endif
