/* proof: amends the end of a run once it is proved that nothing of it is left on its nodes.
 *
 * An attempt that ends while a node cannot be asked has the exit code 5, and its reason says that it is not
 * known whether anything is left. A later stop, launch or doctor, or another attempt of the run, may prove
 * it; the node's row then says "released".
 */
#ifndef DT_REBUILD_PROOF_H
#define DT_REBUILD_PROOF_H

#include "store/store.h"

/* Amends exit code and reason of every attempt whose nodes have all been proved free: each is released, in
 * that attempt or in a later one. In the store and in the run's folder (attempt_record.h). */
dt_status dt_run_amend_end(dt_store *store, const char *run, dt_arena *arena, dt_error *err);

#endif
