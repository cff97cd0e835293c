#include "runner/supervisor/policy/straggler.h"

void dt_straggler_init(dt_straggler *straggler, dt_straggler_rank *ranks, int64_t rank_count)
{
    *straggler = (dt_straggler){.rank_count = rank_count, .ranks = ranks};
    for (int64_t i = 0; i < rank_count; i++)
        ranks[i] = (dt_straggler_rank){0};
}

/* Returns the median wait; sorts in the scratch fields of the ranks. */
static double median_waited(dt_straggler *straggler)
{
    dt_straggler_rank *ranks = straggler->ranks;

    for (int64_t i = 0; i < straggler->rank_count; i++) {
        int64_t at = i;

        for (; at > 0 && ranks[at - 1].sorted_seconds > ranks[i].waited_seconds; at--)
            ranks[at].sorted_seconds = ranks[at - 1].sorted_seconds;
        ranks[at].sorted_seconds = ranks[i].waited_seconds;
    }
    return ranks[straggler->rank_count / 2].sorted_seconds;
}

static bool all_heard(const dt_straggler *straggler)
{
    bool all = true;

    for (int64_t i = 0; i < straggler->rank_count; i++)
        all = all && straggler->ranks[i].heard;
    return all;
}

bool dt_straggler_add(dt_straggler *straggler, int64_t rank, double waited_seconds,
                      dt_straggler_finding *out)
{
    dt_straggler_rank *ranks = straggler->ranks;

    ranks[rank].waited_seconds = waited_seconds;
    ranks[rank].heard = true;
    if (!all_heard(straggler))
        return false;
    out->rank = 0;
    for (int64_t i = 0; i < straggler->rank_count; i++) {
        ranks[i].heard = false;
        if (ranks[i].waited_seconds < ranks[out->rank].waited_seconds)
            out->rank = i;
    }
    out->seconds = median_waited(straggler) - ranks[out->rank].waited_seconds;
    return true;
}
