/* library: a shared library that is looked for when it is needed, and may be missing.
 *
 * Where   what the environment variable names, the library or the folder that it lies in, and
 *         nowhere else; where it is not set: where the loader looks for whoever this file is linked
 *         into (its run path, LD_LIBRARY_PATH, the system's folders)
 * Closed  never: libraries of drivers leave things behind in them
 * Errors  DT_ERR_UNSUPPORTED, in the loader's words
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
