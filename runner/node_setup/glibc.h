/* glibc: which version a program wants, and which one a machine has.
 *
 * Versions are the names "GLIBC_2.34" that the linker writes into a file; the highest one counts. A
 * text in a program that looks like one can make the answer too high, never too low.
 */
#ifndef DT_RUNNER_NODE_SETUP_GLIBC_H
#define DT_RUNNER_NODE_SETUP_GLIBC_H

#include "base/error.h"

#define DT_GLIBC_SIZE 16

/* The highest in a file, as "2.34"; "" where it has none (a static program). */
dt_status dt_glibc_highest(char *version, const char *path, dt_error *err);

/* This machine's. DT_ERR_NOT_FOUND: it has none that is known (musl). */
dt_status dt_glibc_here(char *version);

/* Below 0, 0 or above: of two versions; "" is the lowest. */
int dt_glibc_compare(const char *a, const char *b);

#endif
