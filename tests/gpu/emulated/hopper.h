/* hopper: functions that the emulated engine/ops/cuda/hopper.cuh calls (hopper.cc). Addresses are
 * those of this process; a matrix's descriptor has the offset in a window of 256 KB. */
#ifndef DT_EMULATED_HOPPER_H
#define DT_EMULATED_HOPPER_H

#include "cuda_runtime.h"

#include "engine/ops/cuda/hopper_map.cuh"

void dt_emulated_barrier_make(uintptr_t at, unsigned arrivals);
void dt_emulated_barriers_made(void);
void dt_emulated_barrier_arrive(uintptr_t at, unsigned bytes);
/* Waits until the phase of this parity is over. */
void dt_emulated_barrier_wait(uintptr_t at, unsigned parity);
void dt_emulated_bulk_load(uintptr_t to, const dt_tensor_map *map, uintptr_t at, int column,
                           int head, int row, int sequence);

struct dt_emulated_product {
    float *c; /* this thread's part, n / 2 */
    int n;
    bool adds, in_registers, right_deep;
    uint64_t left, right;
    uint32_t registers[2][8]; /* this thread's two rows of the left operand, 16 elements each */
    float (*value)(uint16_t bits);
};

void dt_emulated_wgmma_fence(void);
void dt_emulated_wgmma(const dt_emulated_product &what);
void dt_emulated_wgmma_commit(void);
void dt_emulated_wgmma_wait(size_t left);

#endif
