#include "engine/comm/nccl/history.h"

#include "base/clock.h"
#include "base/log.h"

const char *dt_nccl_kind_name(dt_nccl_kind kind)
{
    static const char *const names[] = {[DT_NCCL_ALL_REDUCE] = "all_reduce",
                                        [DT_NCCL_REDUCE_SCATTER] = "reduce_scatter",
                                        [DT_NCCL_ALL_GATHER] = "all_gather",
                                        [DT_NCCL_BROADCAST] = "broadcast"};

    return names[kind];
}

const dt_nccl_entry *dt_nccl_history_oldest(const dt_nccl_history *history)
{
    int64_t number = history->reached + 1;

    if (number > history->queued || history->queued - number >= DT_NCCL_HISTORY)
        return NULL;
    return &history->entries[number % DT_NCCL_HISTORY];
}

void dt_nccl_history_log(const dt_nccl_history *history, const char *name)
{
    int64_t first = history->queued - DT_NCCL_HISTORY + 1;
    double now = dt_clock_monotonic_seconds();

    for (int64_t number = first > 1 ? first : 1; number <= history->queued; number++) {
        const dt_nccl_entry *entry = &history->entries[number % DT_NCCL_HISTORY];

        dt_log_error("communicator '%s': #%lld %s of %.3f MB, queued %.1f s ago: %s", name,
                     (long long)number, dt_nccl_kind_name(entry->kind), (double)entry->bytes / 1e6,
                     now - entry->queued_at, number <= history->reached ? "done" : "not done");
    }
}
