/* glibc: finds the glibc version that a program needs, and the version of this machine.
 *
 * Versions are the names "GLIBC_2.34" that the linker writes into a file; the highest one counts. A similar string
 * in a program can make the result too high, never too low.
 */
#ifndef DT_RUNNER_NODE_SETUP_GLIBC_H
#define DT_RUNNER_NODE_SETUP_GLIBC_H

#include "base/error.h"

#define DT_GLIBC_SIZE 16

/* Returns the highest version in a file, as "2.34"; "" if it has none (a static program). */
dt_status dt_glibc_highest(char *version, const char *path, dt_error *err);

/* Returns this machine's version. DT_ERR_NOT_FOUND: no glibc (musl). */
dt_status dt_glibc_here(char *version);

/* Compares two versions like strcmp; "" is the lowest. */
int dt_glibc_compare(const char *a, const char *b);

#endif
