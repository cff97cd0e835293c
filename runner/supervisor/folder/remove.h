/* remove: removes a run for good: its folder and its rows in the history.
 *
 * Order      one transaction removes the rows and, before it commits, renames runs/ID to runs/.removed-ID,
 *            which lists and rebuilds ignore; the files are deleted after the commit. If the rows cannot be
 *            removed (a damaged store), nothing has changed. A process that dies before the commit leaves a
 *            run that is listed without a folder; after the commit, a folder .removed-ID. Calling again, or
 *            dt_removal_finish, completes both.
 * Errors     DT_ERR_BUSY: the run is being supervised or resumed; DT_ERR_USAGE: it has not ended
 */
#ifndef DT_FOLDER_REMOVE_H
#define DT_FOLDER_REMOVE_H

#include "base/arena.h"
#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_REMOVED_PREFIX ".removed-"

dt_status dt_run_remove(dt_store *store, const char *run, dt_arena *arena, dt_error *err);
/* Removes what a command of the run left on other machines; force: reports what cannot be removed with `problem`, and goes
 * on. Does not remove the run itself. */
dt_status dt_run_wipe_nodes(const dt_run *run, bool force, void (*problem)(const char *message),
                            dt_arena *arena, dt_error *err);
/* Finds an interrupted removal, whose rows are gone and whose files are not, by the run's id or
 * name. *id is NULL if there is none. */
dt_status dt_removal_find(const char **id, const char **aside, const char *ref, dt_arena *arena,
                          dt_error *err);
/* Removes the files of such a folder; after a failure, call again to remove the rest. */
dt_status dt_removal_finish(const char *aside, dt_error *err);
/* Locks the run: while the two descriptors are open, nobody supervises, resumes or removes it,
 * and it has ended. The caller closes them. */
dt_status dt_run_hold(int fds[2], dt_store *store, const char *run, dt_arena *arena, dt_error *err);
/* Returns the bytes of all files below a path; a file with several hard links counts several
 * times. */
int64_t dt_tree_bytes(const char *path);

#ifdef __cplusplus
}
#endif
#endif
