#include "runner/supervisor/policy/completion.h"

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
