/* summary: how a run ended, in a few lines or as the JSON of `launch --wait --json`. */
#ifndef DT_RUNNER_VIEW_SUMMARY_H
#define DT_RUNNER_VIEW_SUMMARY_H

#include "runner/term/term.h"
#include "runner/view/incidents.h"
#include "store/store.h"

/* To stdout; for a failed run with the reason and the last lines of the rank to blame. */
dt_status dt_summary_text(dt_store *store, const dt_run *run, dt_arena *arena, dt_error *err);

/* One object to stdout: run, name, state, ..., steps, seconds, checkpoint. */
dt_status dt_summary_json(dt_store *store, const dt_run *run, dt_arena *arena, dt_error *err);

/* What the rank to blame said last, and the kernel of it. */
void dt_summary_add_incident(dt_strbuf *out, const dt_term *term, const dt_incident *incident);

#endif
