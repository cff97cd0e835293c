#include "engine/progress.h"

#include <stdatomic.h>

static atomic_int_fast64_t made;

void dt_progress_made(void)
{
    atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
}

int64_t dt_progress_count(void)
{
    return (int64_t)atomic_load_explicit(&made, memory_order_relaxed);
}
