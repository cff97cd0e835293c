/* library: loads a shared library on demand; the library may be missing.
 *
 * Where   only the path in the environment variable, a library or its folder, if the variable is set; otherwise
 *         the loader's search path (run path of this binary, LD_LIBRARY_PATH, system folders)
 * Closed  never: driver libraries leave threads and callbacks behind
 * Errors  DT_ERR_UNSUPPORTED, with the loader's message
 */
#ifndef DT_BASE_LIBRARY_H
#define DT_BASE_LIBRARY_H

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

dt_status dt_library_open(void **out, const char *name, const char *variable, dt_error *err);
/* Writes the address of a function into the pointer at `function`. */
dt_status dt_library_find(void *function, void *library, const char *symbol, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
