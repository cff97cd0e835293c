#include "runner/supervisor/policy/ending.h"

#include "runner/times.h"

double dt_ending_grace(const dt_ending_facts *facts)
{
    if (facts->stop_now || facts->hung)
        return 0; /* a hanging rank does not react to a grace period */
    return facts->stop_asked && !facts->failed ? facts->grace_seconds
                                               : dt_times()->failed_grace_seconds;
}

double dt_ending_lease(double launcher_lost_seconds, double grace_seconds)
{
    return launcher_lost_seconds > 0
               ? launcher_lost_seconds + grace_seconds + dt_times()->lease_margin_seconds
               : 0;
}
