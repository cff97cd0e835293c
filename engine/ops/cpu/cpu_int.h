/* cpu_int: what the ops of the CPU share: the device's own state, names, threads, scratch.
 *
 * Names     DT_CPU_NAME(activation_forward) is dt_cpu_activation_forward_avx2 in the copy for AVX2
 * Threads   an op opens one parallel region, each thread takes a contiguous share of the work;
 *           shares depend on sizes and thread count alone, so that results repeat bit by bit
 * Scratch   one piece per thread, grown when an op first needs more: the second step of a
 *           training run takes none. Contents do not outlive the op.
 */
#ifndef DT_ENGINE_OPS_CPU_INT_H
#define DT_ENGINE_OPS_CPU_INT_H

#include <omp.h>
#include <stdbool.h>

#include "engine/device/device.h"
#include "engine/ops/ops.h"
#include "engine/progress.h"

struct dt_cpu_products;

typedef struct dt_cpu_state {
    float *scratch;
    size_t scratch_floats;
    struct dt_cpu_products *products;
    const char *isa;
} dt_cpu_state;

typedef struct dt_cpu_scratch {
    float *base;
    size_t stride; /* thread t's piece is at base + t * stride, aligned to 64 bytes */
} dt_cpu_scratch;

/* Borrowed until the next op. */
dt_status dt_cpu_scratch_take(dt_cpu_scratch *out, dt_device *device, int64_t floats_per_thread,
                              dt_error *err);

static inline float *dt_cpu_scratch_mine(dt_cpu_scratch scratch)
{
    return scratch.base + (size_t)omp_get_thread_num() * scratch.stride;
}

#ifdef DT_CPU_ISA
#define DT_CPU_JOIN2(a, b) a##_##b
#define DT_CPU_JOIN(a, b)  DT_CPU_JOIN2(a, b)
#define DT_CPU_NAME(name)  DT_CPU_JOIN(dt_cpu_##name, DT_CPU_ISA)
#endif

/* Waking a team costs a few microseconds: about what one core needs for this many elements of a
 * cheap op. Ops that do more per element say so in `work`. */
#define DT_CPU_WORK_MIN 32768

static inline int dt_cpu_threads(const dt_device *device, int64_t work)
{
    return work < DT_CPU_WORK_MIN ? 1 : device->threads;
}

typedef struct dt_cpu_share {
    int64_t begin, end;
} dt_cpu_share;

/* This thread's share of n, inside a parallel region; each but the last is a multiple of `grain`.
 */
static inline dt_cpu_share dt_cpu_share_mine(int64_t n, int64_t grain)
{
    int64_t threads = omp_get_num_threads(), mine = omp_get_thread_num();
    int64_t grains = (n + grain - 1) / grain;
    dt_cpu_share share = {grains * mine / threads * grain, grains * (mine + 1) / threads * grain};

    if (share.end > n)
        share.end = n;
    if (share.begin > n)
        share.begin = n;
    dt_progress_made();
    return share;
}

static inline int64_t dt_cpu_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t dt_cpu_round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

#endif
