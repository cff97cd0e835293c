/* emulator: what the files behind cuda_runtime.h share. */
#ifndef DT_EMULATED_EMULATOR_H
#define DT_EMULATED_EMULATOR_H

#include <mutex>

#include "cuda_runtime.h"

/* One thread at a time is in the emulator: there is one set of fibers. */
extern std::recursive_mutex dt_emulated_lock;

/* The card that the thread has turned to. */
extern thread_local int dt_emulated_device;

/* When the thread that runs is, in the order of its launch. */
struct dt_emulated_now {
    uint32_t block;      /* counted over the launch */
    uint32_t epoch;      /* __syncthreads that the block has passed */
    uint32_t warp_epoch; /* __syncwarp that the warp has passed */
};
extern struct dt_emulated_now dt_emulated_now;

/* Whether a kernel runs, and this is not its thread's own stack. What lies behind the shared memory
 * that the launch asked for is refused. */
bool dt_emulated_watches(const void *memory, size_t bytes);
/* Shared memory of the block, of either kind. */
bool dt_emulated_is_shared(const void *memory);

/* Where the window of shared memory begins: at a multiple of 256 KB. */
uintptr_t dt_emulated_window(void);
/* This thread goes on when the others have had their turn. */
void dt_emulated_let_others(void);
/* The block's kernel is one for sm_90, whose blocks may have 227 KB; others may have 99. */
void dt_emulated_uses_hopper(void);

/* Where what would lie there lies, swizzled by 128 bytes. */
static inline uintptr_t dt_emulated_swizzled(uintptr_t at)
{
    return at ^ (at >> 7 & 7) << 4;
}

/* --- hopper.cc */

/* A block of so many threads begins. */
void dt_emulated_hopper_block(unsigned threads);
/* This thread ends. */
void dt_emulated_hopper_ends(void);
/* Whether nobody need wait any longer; what is to come by this barrier has come then. */
bool dt_emulated_barrier_over(uintptr_t at, unsigned parity);

/* --- races.cc */

/* A launch begins: what was done before it is before it. */
void dt_emulated_races_begin(void);
/* And a block of it. */
void dt_emulated_races_block(void);
/* This thread reads there. */
void dt_emulated_read(const void *memory, size_t bytes);
/* This thread has begun, or ended, to copy there. */
void dt_emulated_copy_mark(void *memory, size_t bytes, bool under_way);

/* Bulk copies and products, whose order barriers in shared memory give, which are not looked at here: a
 * copy is to land there, or has landed; a product reads there. */
void dt_emulated_async_mark(void *memory, size_t bytes, bool under_way);
void dt_emulated_async_read(const void *memory, size_t bytes);

/* --- streams.cc */

/* All that any stream was given. */
void dt_emulated_drain(void);

/* Whether this thread captures a stream, whose capture is then spoiled: it asked for what must not
 * be asked meanwhile. */
bool dt_emulated_spoil(void);

/* Of so many more captures that begin. */
extern "C" int dt_emulated_captures_refused;

/* Gives it back, kept for cudaGetLastError as that of every failed call is. */
cudaError_t dt_emulated_fail(cudaError_t error);

/* --- memory.cc */

/* While one lives, the cards' memory may be read and written where kernels see it. */
struct dt_emulated_open {
    dt_emulated_open();
    ~dt_emulated_open();
};

/* Says what a card would have called an illegal access, and aborts. */
[[noreturn]] void dt_emulated_refuse(const char *what);

#endif
