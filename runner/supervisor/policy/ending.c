#include "runner/supervisor/policy/ending.h"

#include "base/banned.h"

#define FAILED_GRACE_SECONDS 10.0
#define LEASE_MARGIN_SECONDS 30.0 /* for ranks that are told to stop there, beyond their grace */

double dt_ending_grace(const dt_ending_facts *facts)
{
    if (facts->stop_now || facts->hung)
        return 0; /* what hangs will not end by itself */
    return facts->stop_asked && !facts->failed ? facts->grace_seconds : FAILED_GRACE_SECONDS;
}

double dt_ending_lease(double launcher_lost_seconds, double grace_seconds)
{
    return launcher_lost_seconds > 0 ? launcher_lost_seconds + grace_seconds + LEASE_MARGIN_SECONDS
                                     : 0;
}
