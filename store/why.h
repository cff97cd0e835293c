/* why: reads why.json, the last judgement of why the steps of an attempt take so long.
 *
 * The supervisor replaces the file while the run trains (runner/supervisor/policy/slow.h). docs/slow.md has its
 * fields. A judgement is not history: there is one a run, and no row of the store.
 */
#ifndef DT_STORE_WHY_H
#define DT_STORE_WHY_H

#include <stdint.h>

#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_WHY_FILE "why.json"

/* Returns a new reference, or NULL if the attempt has no readable judgement. folder: runs/ID. */
json_t *dt_why_read(const char *folder, int64_t attempt);

#ifdef __cplusplus
}
#endif

#endif
