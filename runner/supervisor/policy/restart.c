#include "runner/supervisor/policy/restart.h"

#include "base/banned.h"

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
    return (dt_restart_decision){.act = DT_RESTART_AGAIN,
                                 .restarts = restarts,
                                 .nodes_left_out = enough ? facts->nodes_lost : 0};
}
