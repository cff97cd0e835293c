/* run_folder: gives paths in $XDG_STATE_HOME/dtrun/runs/ID, the folder of a run on the launch machine.
 *
 *   recipe.yaml, labels.json (labels.h), environment (launch_env.h), secret, logs/, checkpoints/,
 *   supervisor.{lock,log,starts}
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

/* Returns the path of the file or folder `below` the run's folder; NULL: the folder itself. */
dt_status dt_run_path(const char **out, const char *run, const char *below, dt_arena *arena,
                      dt_error *err);

/* DT_ERR_UNSUPPORTED if the run's folder belongs to another user, who alone can supervise it. */
dt_status dt_run_check_owner(const char *run, const char *folder, dt_error *err);

/* Checks that the state folder has room for what the end of a run writes: writes a file of that size and removes it.
 * DT_ERR_IO: the disk is full, or the folder cannot be written. */
dt_status dt_run_check_room(dt_arena *arena, dt_error *err);

/* Returns the secret of the run's ranks (secret.c): 32 random bytes in hexadecimal from
 * FOLDER/secret (0600); created if missing. */
dt_status dt_run_secret(const char **out, const char *folder, dt_arena *arena, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
