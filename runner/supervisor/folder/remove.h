/* remove: a run goes for good: its folder, and what the history has of it.
 *
 * Order      one transaction removes the rows and, before it commits, renames runs/ID to runs/.removed-ID, which
 *            no list and no rebuild reads; the files go after the commit. Where the rows cannot be removed (a
 *            damaged store) nothing has changed. A process that dies before the commit leaves a run that is
 *            listed and has no folder, after the commit a folder .removed-ID: the same call, or
 *            dt_removal_finish, completes both.
 * Errors     DT_ERR_BUSY: somebody supervises or resumes it; DT_ERR_USAGE: it has not ended
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
/* The id and folder of a removal whose rows are gone and whose files are not: of the run with this id or name.
 * *id is NULL where there is none. */
dt_status dt_removal_find(const char **id, const char **aside, const char *ref, dt_arena *arena,
                          dt_error *err);
/* Removes the files of such a folder; after a failure the same call removes the rest. */
dt_status dt_removal_finish(const char *aside, dt_error *err);
/* While the two descriptors are open, the caller's, nobody supervises, resumes or removes the run, and it has ended. */
dt_status dt_run_hold(int fds[2], dt_store *store, const char *run, dt_arena *arena, dt_error *err);
/* Bytes of all files below a path; a file with several names counts for what each says. */
int64_t dt_tree_bytes(const char *path);

#ifdef __cplusplus
}
#endif
#endif
