/* copies: reads plan.json and place.json, which exist twice: as a file in the run's folder and as a text in
 * the store.
 *
 * The store's copy is made when the file is first read, and neither changes afterwards. If they differ, or if
 * the file is damaged or missing, the copy is used and the file is restored from it. If neither can be read,
 * the run fails only after its nodes were asked (missing_plan.c).
 *
 * Errors  DT_ERR_NOT_FOUND: neither exists; DT_ERR_CORRUPT: neither is valid;
 *         DT_ERR_UNSUPPORTED: another version of dtrun wrote the plan and must supervise the run
 */
#ifndef DT_FOLDER_COPIES_H
#define DT_FOLDER_COPIES_H

#include "recipes/plan/plan.h"
#include "runner/node_setup/node_setup.h"
#include "store/store.h"

/* json: new reference. *restored: the file was restored from the copy. */
dt_status dt_copies_plan(dt_plan *plan, json_t **json, bool *restored, dt_store *store,
                         const char *run, int64_t attempt, const char *folder, dt_arena *arena,
                         dt_error *err);
/* here: attempt-N/node-K on this machine. place->paths: new reference. store NULL: use only the
 * file. */
dt_status dt_copies_place(dt_node_layout *place, bool *restored, dt_store *store, const char *run,
                          int64_t attempt, int64_t node, const char *here, dt_arena *arena,
                          dt_error *err);

#endif
