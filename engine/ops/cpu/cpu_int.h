/* cpu_int: shares code between the CPU ops: the state of the device, names, threads, scratch memory.
 *
 * Names     DT_CPU_NAME(activation_forward) is dt_cpu_activation_forward_avx2 in the build for AVX2
 * Threads   an op opens one parallel region, and each thread takes a contiguous share of the work;
 *           shares depend only on sizes and thread count, so results are reproducible bit by bit.
 *           Ops on a single row of activations, as in generation, run on one thread, and those that
 *           read much memory for it, a product and attention, on the device's team
 * Scratch   one block per thread, grown when an op first needs more: from the second step on,
 *           training allocates nothing. The contents are undefined after the op.
 */
#ifndef DT_ENGINE_OPS_CPU_INT_H
#define DT_ENGINE_OPS_CPU_INT_H

#include <omp.h>
#include <stdbool.h>

#include "engine/device/device.h"
#include "engine/ops/cpu/team.h"
#include "engine/ops/ops.h"
#include "engine/progress.h"

struct dt_cpu_products;

/* A matrix that a product of one row read, and the one that the next product of one row read. */
typedef struct dt_cpu_after {
    const void *w;
    dt_cpu_coming next;
} dt_cpu_after;

#define DT_CPU_AFTER 1024 /* a power of 2 */

typedef struct dt_cpu_state {
    float *scratch;
    size_t scratch_floats;
    struct dt_cpu_products *products;
    const char *isa;
    dt_cpu_team *team;                /* NULL until it is needed */
    dt_cpu_after after[DT_CPU_AFTER]; /* by a hash of w */
    dt_cpu_after *last;               /* of the last such product; NULL: none yet */
} dt_cpu_state;

typedef struct dt_cpu_scratch {
    float *base;
    size_t stride; /* thread t's block is at base + t * stride, aligned to 64 bytes */
} dt_cpu_scratch;

/* Gives scratch memory of floats_per_thread floats for each thread, valid until the next op.
 * DT_ERR_NOMEM on failure. */
dt_status dt_cpu_scratch_take(dt_cpu_scratch *out, dt_device *device, int64_t floats_per_thread,
                              dt_error *err);

/* Computes pieces on the device's team, or on this thread if `work` is little (dt_cpu_threads). DT_ERR_NOMEM. */
dt_status dt_cpu_pieces_run(dt_device *device, int64_t work, dt_cpu_piece *run, void *self,
                            int64_t pieces, dt_cpu_coming coming, dt_error *err);

/* Notes that a product of one row reads w, and returns what was read after w the last time: tokens of a text read all
 * matrices in the same order. */
dt_cpu_coming dt_cpu_coming_after(dt_device *device, const void *w, size_t bytes);

static inline float *dt_cpu_scratch_mine(dt_cpu_scratch scratch)
{
    return scratch.base + (size_t)omp_get_thread_num() * scratch.stride;
}

#ifdef DT_CPU_ISA
#define DT_CPU_JOIN2(a, b) a##_##b
#define DT_CPU_JOIN(a, b)  DT_CPU_JOIN2(a, b)
#define DT_CPU_NAME(name)  DT_CPU_JOIN(dt_cpu_##name, DT_CPU_ISA)
#endif

/* Least work for more than one thread, in elements of a cheap op: waking the threads costs a few
 * microseconds, as much as this work on one core. Ops that do more per element pass a larger
 * `work`. */
#define DT_CPU_WORK_MIN 32768

static inline int dt_cpu_threads(const dt_device *device, int64_t work)
{
    return work < DT_CPU_WORK_MIN ? 1 : device->threads;
}

/* The same for an op on rows of activations: a single row runs on one thread. */
static inline int dt_cpu_threads_rows(const dt_device *device, int64_t rows, int64_t work)
{
    return rows == 1 ? 1 : dt_cpu_threads(device, work);
}

typedef struct dt_cpu_share {
    int64_t begin, end;
} dt_cpu_share;

/* Returns this thread's share of n, inside a parallel region. All shares but the last are multiples
 * of `grain`. */
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
