/* run_id: short names that nobody misreads.
 *
 * Six of the 31 characters a-z and 2-9 without i, l and o (taken for 1 and 0): 887 million, drawn
 * from the system's randomness. Uniqueness is the caller's: it takes an id by making its folder.
 */
#ifndef DT_RUNNER_LAUNCH_RUN_ID_H
#define DT_RUNNER_LAUNCH_RUN_ID_H

#include "base/error.h"

#define DT_RUN_ID_SIZE 7

dt_status dt_run_id_draw(char *out, dt_error *err);

#endif
