/* report: how a sweep is told: a line a point, and JSON
 *   {"version": 1, "group", "ended", "points": [{"name", "values", "state", "run", "step", "loss",
 *    "valid_loss", "cut", "problem"}]}
 * where a point's state is that of its run, "waiting", "refused" (it could not be launched), "removed", or "cut"
 * (stopped as one of the worse).
 */
#ifndef DT_SWEEP_REPORT_H
#define DT_SWEEP_REPORT_H

#include "base/json.h"
#include "runner/cli/command.h"
#include "runner/sweep/group.h"
#include "runner/term/term.h"
#include "store/store.h"

/* New reference. */
dt_status dt_group_to_json(json_t **out, const dt_sweep_group *group, dt_store *store,
                           dt_arena *arena, dt_error *err);
dt_status dt_group_table(dt_strbuf *out, const dt_term *term, const dt_sweep_group *group,
                         dt_store *store, dt_arena *arena, dt_error *err);

/* Whether `ref` is a sweep: one that has not ended, before a run of that name; else where there is no such
 * run. Where it could be both, a note says which it is. */
bool dt_group_is_meant(dt_sweep_group *out, const char *ref, dt_call *call);

/* Asks for a stop, and waits until no run of it is left. Ctrl-C leaves it: 130. */
dt_status dt_group_stop(const dt_sweep_group *group, bool now, dt_call *call, dt_error *err);

/* Prints it, as a table or an object, and sets the exit code where the group has ended: 1 where a point
 * failed, 4 where one was stopped by a person. */
dt_status dt_group_print(const dt_sweep_group *group, dt_store *store, dt_call *call,
                         dt_error *err);

/* Tells each change until all points have ended, then the whole. Ctrl-C lets go of it: 130. */
dt_status dt_group_follow(const char *name, dt_call *call, dt_error *err);

#endif
