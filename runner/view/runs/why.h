/* why: shows why the steps of a run take so long (docs/slow.md): all of it for `dtrun show RUN --why`, and one line
 * for `dtrun status` if something is wrong.
 */
#ifndef DT_RUNNER_VIEW_RUNS_WHY_H
#define DT_RUNNER_VIEW_RUNS_WHY_H

#include "base/json.h"
#include "base/memory.h"
#include "runner/term/term.h"
#include "store/run.h"

/* *out: new reference to the last judgement of the newest attempt, or NULL if there is none. */
dt_status dt_why_of_run(json_t **out, const dt_run *run, dt_arena *arena, dt_error *err);
/* The same if it still holds: the run trains, and the judgement is not old. */
dt_status dt_why_now(json_t **out, const dt_run *run, int64_t now_ms, dt_arena *arena,
                     dt_error *err);

/* Adds the table of a step, and the findings with their evidence. */
void dt_why_add(dt_strbuf *out, const dt_term *term, const json_t *why, dt_arena *arena);
/* Adds the worst finding as one line; nothing if there is none. why can be NULL. */
void dt_why_add_line(dt_strbuf *out, const dt_term *term, const json_t *why);

#endif
