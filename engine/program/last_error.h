/* last_error: keeps the end of a program's stderr, and finds the error in it.
 *
 * Found      the last exception of a Python traceback, without the prefix "[rank1]: " of PyTorch; else the last line.
 *            torchrun's report of a failed child is not an error of its own
 * Warnings   of Python (a leaked semaphore, a process group that was not destroyed), of logs, and exceptions that
 *            Python ignores at its end are not the last line
 * Secondary  an exception that another rank's death causes (connection closed by peer, a collective that timed out):
 *            an exception that is not secondary is preferred, and a process whose errors are all secondary is not the
 *            first cause of a failure
 */
#ifndef DT_ENGINE_PROGRAM_LAST_ERROR_H
#define DT_ENGINE_PROGRAM_LAST_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory.h"

#define DT_LAST_ERROR_AT \
    " at " /* between the error of faulthandler and its place; the supervisor looks for it */
#define DT_LAST_ERROR_BYTES ((size_t)64 << 10) /* of stderr that are kept */

typedef struct dt_last_error {
    char *text; /* [DT_LAST_ERROR_BYTES], a ring */
    size_t at, length;
} dt_last_error;

void dt_last_error_init(dt_last_error *out);
void dt_last_error_release(dt_last_error *last); /* accepts a zeroed struct */
void dt_last_error_add(dt_last_error *last, const char *bytes, size_t length);
/* Returns the error as one line of valid UTF-8; NULL: stderr had no text. */
const char *dt_last_error_find(bool *secondary, const dt_last_error *last, dt_arena *arena);
/* Returns whether Python's faulthandler wrote the error, which tells why a signal ended the program. */
bool dt_last_error_is_fatal(const char *text);

#endif
