/* mapping: maps a file as read-only memory.
 *
 * Pages come from the page cache, so the ranks of a node share one copy, and a corpus larger
 * than the memory can be read.
 * Invariant  the file must not be truncated while it is mapped (the kernel would send SIGBUS):
 *            replace data files by renaming a new one into place
 */
#ifndef DT_ENGINE_MAPPING_H
#define DT_ENGINE_MAPPING_H

#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_mapping {
    const unsigned char *bytes; /* contents of the file; NULL for an empty file */
    size_t length;
} dt_mapping;

/* DT_ERR_RECIPE naming the file and why it cannot be read. */
dt_status dt_mapping_open(dt_mapping *out, const char *path, dt_error *err);
void dt_mapping_close(dt_mapping *mapping); /* accepts a zeroed mapping */

#ifdef __cplusplus
}
#endif
#endif
