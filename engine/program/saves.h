/* saves: finds the checkpoints that a program writes, and sends a `checkpoint` event for each complete one.
 *
 * Pattern   relative to the current folder, or absolute: * ? [..] as in a shell, {step} a number, {run} the run's id
 * Complete  no file changed for `settle` seconds while the program ran, or the marker exists; if the program ended
 *           well, all that exist. A checkpoint that was being written when the program died is never reported
 * Old ones  those that exist before the program starts are reported only if they change
 * Step      the number at {step}; else the last step of the metrics when the files last changed; else the last
 *           number in the name; else 0
 * Thread    a thread looks at the files, since a slow file system must not delay output and signals
 * Limits    10,000 paths; paths that are not UTF-8 are left out, with a warning
 */
#ifndef DT_ENGINE_PROGRAM_SAVES_H
#define DT_ENGINE_PROGRAM_SAVES_H

#include "engine/channel/events.h"
#include "recipes/plan/plan.h"

typedef struct dt_saves dt_saves;

/* Notes the files that exist. *out: NULL if the recipe names no checkpoints. The other arguments must outlive it. */
dt_status dt_saves_open(dt_saves **out, const dt_plan *plan, dt_events *events, dt_arena *arena,
                        dt_error *err);
/* Starts the thread. Accepts NULL, as the functions below do. */
dt_status dt_saves_start(dt_saves *saves, dt_error *err);
/* Notes the last step of the metrics. */
void dt_saves_note_step(dt_saves *saves, int64_t step);
/* Ends the thread and looks a last time. ended_well: the program is done with all its files. */
void dt_saves_end(dt_saves *saves, bool ended_well);
void dt_saves_close(dt_saves *saves);

/* Returns whether `path` matches a pattern; *step: the number at {step}, -1 without {step}. */
bool dt_saves_match(int64_t *step, const char *pattern, const char *path);

#endif
