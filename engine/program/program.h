/* program: runs the user's program as one rank of a run (a recipe with a `command`).
 *
 * The agent starts `dtrun-engine train` for every rank, whatever the task. For a command this process agrees with
 * the other ranks on MASTER_PORT, starts the program as its child, and reports for it: `ready` once it was executed,
 * lines of its stdout as `metrics`, `finished` when it ends well. Then this process ends as the program did, with
 * its exit code or by its signal, so that causes, restarts and stops are those of every rank.
 *
 * Output   stdout of a rank without metrics goes to the agent directly
 * Cause    of a program that fails, the error that it wrote last is sent as `failed` (last_error.h); one that another
 *          rank's death causes has the status "peer"
 * Stop     SIGTERM is passed on, with `shell` to the process group. A program that then ends with code 0, 143 or
 *          by SIGTERM has stopped as asked. The agent enforces the grace period
 * Limit    time_limit counts from the start of the program: SIGTERM, and SIGKILL after grace_seconds
 * Death    the program gets SIGKILL if this process dies; its descendants are the agent's to find (PROTOCOL.md)
 * Errors   *err has been sent as `failed`. DT_ERR_RECIPE: the program cannot be executed
 */
#ifndef DT_ENGINE_PROGRAM_PROGRAM_H
#define DT_ENGINE_PROGRAM_PROGRAM_H

#include "engine/channel/events.h"
#include "recipes/plan/plan.h"

/* How the program ended: by a signal, or with a code. */
typedef struct dt_program_end {
    int signal; /* 0: none */
    int code;
} dt_program_end;

/* Blocks the signals that dt_program_run waits for; call it before threads are started. */
void dt_program_block_signals(void);
dt_status dt_program_run(dt_program_end *out, const dt_plan *plan, int64_t rank, dt_events *events,
                         dt_error *err);
/* Ends this process as the program ended. Does not return. */
void dt_program_leave(const dt_program_end *end);

#endif
