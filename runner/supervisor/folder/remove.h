/* remove: a run goes for good: its folder, and what the history has of it.
 *
 * Order      runs/ID becomes runs/.removed-ID at once; then its files go, then its rows, as one
 *            transaction. Who dies on the way leaves a run that is listed and has no folder, or half a
 *            folder that no list and no rebuild looks at: the same call again ends it.
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
/* While the two descriptors are open, the caller's, nobody supervises, resumes or removes the run, and it has ended. */
dt_status dt_run_hold(int fds[2], dt_store *store, const char *run, dt_arena *arena, dt_error *err);
/* Bytes of all files below a path; a file with several names counts for what each says. */
int64_t dt_tree_bytes(const char *path);

#ifdef __cplusplus
}
#endif
#endif
