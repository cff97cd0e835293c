/* emulator: what the files behind cuda_runtime.h share. */
#ifndef DT_EMULATED_EMULATOR_H
#define DT_EMULATED_EMULATOR_H

#include <mutex>

#include "cuda_runtime.h"

/* One thread at a time is in the emulator: there is one set of fibers. */
extern std::recursive_mutex dt_emulated_lock;

/* The card that the thread has turned to. */
extern thread_local int dt_emulated_device;

/* --- streams.cc */

/* All that any stream was given. */
void dt_emulated_drain(void);

/* --- memory.cc */

/* While one lives, the cards' memory may be read and written where kernels see it. */
struct dt_emulated_open {
    dt_emulated_open();
    ~dt_emulated_open();
};

/* Says what a card would have called an illegal access, and aborts. */
[[noreturn]] void dt_emulated_refuse(const char *what);

#endif
