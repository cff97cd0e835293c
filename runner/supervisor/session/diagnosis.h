/* diagnosis: names the rank that blocks the others, from the ranks' own diagnoses. Pure functions.
 *
 * diagnoses: [by rank] the `diagnosis` event of its agent (runner/PROTOCOL.md), or null if none came.
 */
#ifndef DT_SESSION_DIAGNOSIS_H
#define DT_SESSION_DIAGNOSIS_H

#include "base/json.h"
#include "runner/supervisor/policy/watchdog.h"

typedef struct dt_hang_diagnosis {
    const json_t *diagnoses;
    const dt_watchdog *watchdog; /* observations from before the diagnosis */
    /* Returns the host of a rank. */
    const char *(*host_of)(const void *context, int64_t rank);
    const void *context;
} dt_hang_diagnosis;

/* Appends ": rank 2 on b does not answer, while rank 0 on a waits in all_reduce"; appends
 * nothing if there is no diagnosis. hung: the rank that the watchdog found hanging. */
void dt_hang_diagnosis_say(dt_strbuf *out, const dt_hang_diagnosis *diagnosis, int64_t hung);

#endif
