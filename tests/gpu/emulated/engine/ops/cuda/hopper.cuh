/* emulated sm_90a: the functions of engine/ops/cuda/hopper.cuh, implemented in hopper.cc. */
#ifndef DT_ENGINE_OPS_CUDA_HOPPER_CUH
#define DT_ENGINE_OPS_CUDA_HOPPER_CUH

#include "engine/ops/cuda/hopper_map.cuh"
#include "engine/ops/cuda/ptx.cuh"
#include "hopper.h"

static inline void dt_barrier_make(dt_shared barrier, unsigned arrivals)
{
    dt_emulated_barrier_make(barrier, arrivals);
}

static inline void dt_barriers_made()
{
    dt_emulated_barriers_made();
}

static inline void dt_barrier_arrive(dt_shared barrier)
{
    dt_emulated_barrier_arrive(barrier, 0);
}

static inline void dt_barrier_arrive_after(dt_shared barrier, float)
{
    dt_emulated_barrier_arrive(barrier, 0);
}

static inline void dt_barrier_expect(dt_shared barrier, unsigned bytes)
{
    dt_emulated_barrier_arrive(barrier, bytes);
}

static inline void dt_barrier_wait(dt_shared barrier, unsigned parity, unsigned &)
{
    dt_emulated_barrier_wait(barrier, parity);
}

static inline void dt_bulk_load(dt_shared to, const dt_tensor_map *map, dt_shared barrier,
                                int column, int head, int row, int sequence)
{
    dt_emulated_bulk_load(to, map, barrier, column, head, row, sequence);
}

template <int COUNT> static inline void dt_registers_fewer() {}
template <int COUNT> static inline void dt_registers_more() {}

static inline uint64_t dt_matrix(dt_shared start, unsigned panels_apart)
{
    return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)(panels_apart >> 4 & 0x3fff) << 16 | (start >> 4 & 0x3fff);
}

static inline uint64_t dt_matrix_from(uint64_t matrix, unsigned bytes)
{
    return matrix + (bytes >> 4);
}

static inline void dt_wgmma_fence()
{
    dt_emulated_wgmma_fence();
}

static inline void dt_wgmma_commit()
{
    dt_emulated_wgmma_commit();
}

template <int LEFT> static inline void dt_wgmma_wait()
{
    dt_emulated_wgmma_wait(LEFT);
}

template <typename T> static inline float dt_emulated_value_of(uint16_t bits)
{
    T value;

    value.bits = bits;
    return dt_to_float(value);
}

template <bool ADD, bool RIGHT_DEEP, int N, typename T>
static inline void dt_wgmma(float (&c)[N][4], uint64_t left, uint64_t right, T)
{
    dt_emulated_wgmma(
        {&c[0][0], N * 8, ADD, false, RIGHT_DEEP, left, right, {}, dt_emulated_value_of<T>});
}

/* Lanes 4r to 4r + 3 hold rows r and r + 8, at depths 2(l%4) and +1, and 8 further. */
template <bool ADD, bool RIGHT_DEEP, int N, typename T>
__attribute__((no_sanitize("thread"))) static inline void dt_wgmma(float (&c)[N][4],
                                                                   const dt_frag &left,
                                                                   uint64_t right, T)
{
    const unsigned char *all = dt_emulated_exchange_all(&left, sizeof(left), 0xffffffffu, __LINE__);
    dt_emulated_product what = {
        &c[0][0], N * 8, ADD, true, RIGHT_DEEP, 0, right, {}, dt_emulated_value_of<T>};

    for (unsigned i = 0; i < 4; i++) {
        dt_frag theirs;

        memcpy(&theirs, all + (threadIdx.x % 32 / 4 * 4 + i) * 64, sizeof(theirs));
        for (int half = 0; half < 2; half++) {
            what.registers[half][i] = theirs.r[half];
            what.registers[half][4 + i] = theirs.r[2 + half];
        }
    }
    dt_emulated_wgmma(what);
}

#endif
