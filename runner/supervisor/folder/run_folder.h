/* run_folder: $XDG_STATE_HOME/dtrun/runs/ID, that a run has on the launch machine.
 *
 *   recipe.yaml, labels.json (labels.h), environment (launch_env.h), secret, logs/, checkpoints/, supervisor.{lock,log,starts}
 *   attempt-N/plan.json, history.json (attempt_record.h), node-K/place.json (copies.h)
 */
#ifndef DT_FOLDER_RUN_FOLDER_H
#define DT_FOLDER_RUN_FOLDER_H

#include "base/arena.h"
#include "base/error.h"

#define DT_SUPERVISOR_STARTS "supervisor.starts" /* channel/starts.h */

#ifdef __cplusplus
extern "C" {
#endif

/* The folder of the run, and the file or folder `below` it (NULL: the folder itself). */
dt_status dt_run_path(const char **out, const char *run, const char *below, dt_arena *arena,
                      dt_error *err);

/* DT_ERR_UNSUPPORTED where the run's folder is another user's, who alone can supervise it. */
dt_status dt_run_check_owner(const char *run, const char *folder, dt_error *err);

/* 32 random bytes, hexadecimal, in FOLDER/secret (0600); made where missing. What the ranks of a
 * run know and nobody else (secret.c). */
dt_status dt_run_secret(const char **out, const char *folder, dt_arena *arena, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
