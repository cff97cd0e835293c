/* proof: amends the end of a run once it is verified that nothing of it is left on its nodes.
 *
 * An attempt that ends while a node cannot be asked has exit code 5, and its reason says that this could not be
 * verified. A later stop, launch or doctor, or another attempt of the run, may verify it; the node's row then
 * says "released".
 */
#ifndef DT_REBUILD_PROOF_H
#define DT_REBUILD_PROOF_H

#include "store/store.h"

/* Amends exit code and reason, in the store and in the run's folder (attempt_record.h), of every
 * attempt whose nodes are all released, in that attempt or in a later one. */
dt_status dt_run_amend_end(dt_store *store, const char *run, dt_arena *arena, dt_error *err);

#endif
