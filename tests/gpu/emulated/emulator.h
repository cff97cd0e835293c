/* emulator: declarations that the files behind cuda_runtime.h share. */
#ifndef DT_EMULATED_EMULATOR_H
#define DT_EMULATED_EMULATOR_H

#include <mutex>

#include "cuda_runtime.h"

/* Only one thread at a time is in the emulator: there is one set of fibers. */
extern std::recursive_mutex dt_emulated_lock;

/* The current card of the thread. */
extern thread_local int dt_emulated_device;

/* Position of the running thread in the order of its launch. */
struct dt_emulated_now {
    uint32_t block;      /* counted over the launch */
    uint32_t epoch;      /* number of __syncthreads that the block has passed */
    uint32_t warp_epoch; /* number of __syncwarp that the warp has passed */
};
extern struct dt_emulated_now dt_emulated_now;

/* Returns whether a kernel runs, and the address is not on its thread's own stack. Refuses
 * addresses after the shared memory that the launch requested. */
bool dt_emulated_watches(const void *memory, size_t bytes);
/* Shared memory of the block, static and dynamic. */
bool dt_emulated_is_shared(const void *memory);

/* Start of the window of shared memory: a multiple of 256 KB. */
uintptr_t dt_emulated_window(void);
/* Lets the other threads run before this one continues. */
void dt_emulated_let_others(void);
/* Whether the block's kernel is for sm_90, whose blocks may have 227 KB; others may have 99. */
void dt_emulated_uses_hopper(void);

/* Address of an element with the 128-byte swizzle. */
static inline uintptr_t dt_emulated_swizzled(uintptr_t at)
{
    return at ^ (at >> 7 & 7) << 4;
}

/* --- hopper.cc */

/* Called when a block of this many threads starts. */
void dt_emulated_hopper_block(unsigned threads);
/* Called when this thread ends. */
void dt_emulated_hopper_ends(void);
/* Returns whether the barrier's phase is over; the copies that it counts have then arrived. */
bool dt_emulated_barrier_over(uintptr_t at, unsigned parity);

/* --- races.cc */

/* Called when a launch starts: everything done earlier is ordered before it. */
void dt_emulated_races_begin(void);
/* Called when a block of it starts. */
void dt_emulated_races_block(void);
/* Called when this thread reads there. */
void dt_emulated_read(const void *memory, size_t bytes);
/* Called when this thread has started, or completed, a copy to there. */
void dt_emulated_copy_mark(void *memory, size_t bytes, bool under_way);

/* For bulk copies and products, whose order comes from barriers in shared memory, which are not
 * checked here: called when a copy is started, when it has arrived, and when a product reads there. */
void dt_emulated_async_mark(void *memory, size_t bytes, bool under_way);
void dt_emulated_async_read(const void *memory, size_t bytes);

/* --- streams.cc */

/* Does all work that any stream was given. */
void dt_emulated_drain(void);

/* Returns whether this thread captures a stream, and invalidates the capture, because the call is
 * not allowed meanwhile. */
bool dt_emulated_spoil(void);

/* Number of the next captures that are refused. */
extern "C" int dt_emulated_captures_refused;

/* Returns the error, and keeps it for cudaGetLastError like that of every failed call. */
cudaError_t dt_emulated_fail(cudaError_t error);

/* --- memory.cc */

/* While one exists, the cards' memory can be read and written at the addresses of kernels. */
struct dt_emulated_open {
    dt_emulated_open();
    ~dt_emulated_open();
};

/* Prints that a card would report an illegal access, and aborts. */
[[noreturn]] void dt_emulated_refuse(const char *what);

#endif
