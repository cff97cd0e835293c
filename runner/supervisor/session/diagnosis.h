/* diagnosis: which rank holds up the others, told from what each says that it does. Pure functions.
 *
 * diagnoses: [by rank] the `diagnosis` of its agent (runner/PROTOCOL.md), null where none came.
 */
#ifndef DT_SESSION_DIAGNOSIS_H
#define DT_SESSION_DIAGNOSIS_H

#include "base/json.h"
#include "runner/supervisor/policy/watchdog.h"

typedef struct dt_hang_diagnosis {
    const json_t *diagnoses;
    const dt_watchdog *watchdog; /* that saw what they did before */
    /* The host of a rank. */
    const char *(*host_of)(const void *context, int64_t rank);
    const void *context;
} dt_hang_diagnosis;

/* ": rank 2 on b does not answer, while rank 0 on a waits in all_reduce"; nothing where nobody
 * answered. hung: whose evidence it was. */
void dt_hang_diagnosis_say(dt_strbuf *out, const dt_hang_diagnosis *diagnosis, int64_t hung);

#endif
