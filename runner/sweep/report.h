/* report: prints a sweep: a line per point, or JSON
 *   {"version": 1, "group", "ended", "points": [{"name", "values", "state", "run", "step", "loss",
 *    "valid_loss", "cut", "problem"}]}
 * where a point's state is that of its run, "waiting", "refused" (it could not be launched), "removed", or "cut"
 * (stopped early).
 */
#ifndef DT_SWEEP_REPORT_H
#define DT_SWEEP_REPORT_H

#include "base/json.h"
#include "runner/cli/command.h"
#include "runner/sweep/group.h"
#include "runner/term/term.h"
#include "store/store.h"

/* *out: new reference. */
dt_status dt_group_to_json(json_t **out, const dt_sweep_group *group, dt_store *store,
                           dt_arena *arena, dt_error *err);
dt_status dt_group_table(dt_strbuf *out, const dt_term *term, const dt_sweep_group *group,
                         dt_store *store, dt_arena *arena, dt_error *err);

/* Returns true if `ref` is a sweep: a running one takes precedence over a run of that name, an
 * ended one does not. If it could be both, a note says which was chosen. */
bool dt_group_is_meant(dt_sweep_group *out, const char *ref, dt_call *call);

/* Requests a stop, and waits until none of its runs is left. Ctrl-C stops waiting: 130. */
dt_status dt_group_stop(const dt_sweep_group *group, bool now, dt_call *call, dt_error *err);

/* Prints it as a table or an object, and sets the exit code if the group has ended: 1 if a point
 * failed, 4 if one was stopped by a person. */
dt_status dt_group_print(const dt_sweep_group *group, dt_store *store, dt_call *call,
                         dt_error *err);

/* Prints each change until all points have ended, then the table. Ctrl-C detaches: 130. */
dt_status dt_group_follow(const char *name, dt_call *call, dt_error *err);

#endif
