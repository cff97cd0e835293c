/* restart: the grace period of ranks that are ended, and whether another attempt follows. */
#include "runner/supervisor/policy/restart.h"

#include <string.h>

#include "runner/times.h"

/* --- ending */

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

/* --- another attempt */

int64_t dt_completion_total(const dt_completion *facts)
{
    if (facts->saved_total > 0)
        return facts->saved_total;
    if (facts->told_total > 0)
        return facts->told_total;
    return facts->epochs == 0 ? facts->steps : 0;
}

bool dt_completion_reached(const dt_completion *facts)
{
    int64_t total = dt_completion_total(facts);

    if (facts->steps > 0 && facts->saved_step >= facts->steps)
        return true; /* the epochs do not matter then */
    return total > 0 && facts->saved_step >= total;
}

bool dt_restart_is_possible(const dt_restart_facts *facts)
{
    return facts->may_restart && facts->started && facts->planned;
}

dt_restart_decision dt_restart_decide(const dt_restart_facts *facts)
{
    bool advanced = facts->done.saved_step > facts->start_step;
    int64_t restarts = advanced ? 1 : facts->restarts + 1;
    bool enough = facts->nodes_min > 0 && facts->nodes - facts->nodes_lost >= facts->nodes_min;

    if (!dt_restart_is_possible(facts))
        return (dt_restart_decision){.act = DT_RESTART_END};
    if (dt_completion_reached(&facts->done))
        return (dt_restart_decision){.act = DT_RESTART_DONE};
    if (facts->max_restarts == 0)
        return (dt_restart_decision){.act = DT_RESTART_END};
    if (restarts > facts->max_restarts)
        return (dt_restart_decision){.act = DT_RESTART_SPENT};
    if (facts->same_error && !advanced && facts->nodes_lost == 0)
        return (dt_restart_decision){.act = DT_RESTART_SAME};
    return (dt_restart_decision){.act = DT_RESTART_AGAIN,
                                 .restarts = restarts,
                                 .nodes_left_out = enough ? facts->nodes_lost : 0};
}

bool dt_restart_same_reason(const char *a, const char *b)
{
    static const char digits[] = "0123456789";

    if (a[0] == '\0' || b[0] == '\0')
        return false;
    while (*a != '\0' && *b != '\0') {
        size_t of_a = strspn(a, digits), of_b = strspn(b, digits);

        if ((of_a == 0) != (of_b == 0) || (of_a == 0 && *a != *b))
            return false;
        a += of_a > 0 ? of_a : 1;
        b += of_b > 0 ? of_b : 1;
    }
    return *a == *b;
}

double dt_grow_pause(int64_t grown, double first_seconds, double most_seconds)
{
    double seconds = first_seconds;

    for (int64_t i = 0; i < grown && seconds < most_seconds; i++)
        seconds *= 2;
    return seconds < most_seconds ? seconds : most_seconds;
}

double dt_restart_pause(int64_t restarts, double first_seconds, double most_seconds)
{
    double seconds = first_seconds;

    for (int64_t i = 1; i < restarts && seconds < most_seconds; i++)
        seconds *= 4;
    return restarts < 1 ? 0 : seconds < most_seconds ? seconds : most_seconds;
}
