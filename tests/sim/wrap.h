/* wrap: wraps the programs' calls to libc, which are answered here (the linker's --wrap).
 * Outside a task they go to the system. */
#ifndef DT_SIM_WRAP_H
#define DT_SIM_WRAP_H

#include <errno.h>

#include "tests/sim/sim.h"

enum { SIM_PATH_BYTES = 512 };

/* WRAP(type, name, arguments) { ... }: the wrapper; the system's own is __real_NAME. */
#define WRAP(type, name, ...)        \
    type __real_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__)

static inline int sim_errno(int number)
{
    errno = number;
    return -1;
}

#endif
