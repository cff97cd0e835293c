#include "runner/supervisor/policy/refusal.h"

#include "base/banned.h"

#define LIMIT   60 /* total weight of refusals that is too much */
#define LASTING 12 /* weight of a lasting refusal; others weigh 1 */

bool dt_refusal_is_last(dt_refusals *refusals, int64_t next_event, bool lasting)
{
    if (next_event > refusals->next_event)
        refusals->weight = 0;
    refusals->next_event = next_event;
    refusals->weight += lasting ? LASTING : 1;
    return refusals->weight >= LIMIT;
}
