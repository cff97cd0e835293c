/* mend: a command meets runs that the run store lacks, or knows an older state of (rebuild.h).
 *
 * Where a supervisor follows the run it is left to that one, which has the store open as it was. What goes
 * wrong is reported, and changes nothing.
 */
#ifndef DT_FOLDER_MEND_H
#define DT_FOLDER_MEND_H

#include "store/store.h"

/* True where rows were written anew. */
bool dt_mend_run(dt_store *store, const char *run);
/* Every run that has a folder. */
void dt_mend_all(dt_store *store);

#endif
