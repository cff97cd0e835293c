/* copies: plan.json and place.json, each of which is there twice: as a file of the run's folder and
 * as a text of the store.
 *
 * The store's copy is made when the file is first read, and neither is changed afterwards: where
 * they differ, or the file is damaged or gone, the copy is the truth, and the file is written anew.
 * Where neither can be read the run is not called failed before its nodes were asked (missing_plan.c).
 *
 * Errors  DT_ERR_NOT_FOUND: there is neither; DT_ERR_CORRUPT: there is no good one;
 *         DT_ERR_UNSUPPORTED: another build wrote the plan, and has to supervise the run
 */
#ifndef DT_FOLDER_COPIES_H
#define DT_FOLDER_COPIES_H

#include "recipes/plan.h"
#include "runner/node_setup/node_setup.h"
#include "store/store.h"

/* json: new reference. *restored: the file was not what it should be. */
dt_status dt_copies_plan(dt_plan *plan, json_t **json, bool *restored, dt_store *store,
                         const char *run, int64_t attempt, const char *folder, dt_arena *arena,
                         dt_error *err);
/* here: attempt-N/node-K on this machine. place->paths: new reference. store NULL: the file alone.
 */
dt_status dt_copies_place(dt_node_layout *place, bool *restored, dt_store *store, const char *run,
                          int64_t attempt, int64_t node, const char *here, dt_arena *arena,
                          dt_error *err);

#endif
