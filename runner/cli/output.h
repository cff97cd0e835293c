/* output: writes the output of a command to stdout, or atomically to a file.
 *
 * A file is written under a temporary name and renamed once it is completely on disk: after an interruption (a full
 * disk, a signal) the previous file is intact.
 * Errors   DT_ERR_USAGE if the file exists and must not be replaced; DT_ERR_IO
 */
#ifndef DT_CLI_OUTPUT_H
#define DT_CLI_OUTPUT_H

#include "base/arena.h"
#include "base/strbuf.h"

typedef struct dt_output {
    dt_strbuf text;               /* pending text; callers append to it */
    size_t passed;                /* bytes already written */
    const char *path, *temporary; /* NULL: stdout */
    int fd;
    bool replace; /* replace an existing file */
} dt_output;

/* path NULL: stdout. On failure nothing needs to be closed. */
dt_status dt_output_open(dt_output *out, const char *path, bool replace, dt_arena *arena,
                         dt_error *err);
/* Checks that the file can be written, and leaves none. path NULL: stdout. */
dt_status dt_output_check(const char *path, bool replace, dt_arena *arena, dt_error *err);
/* Writes the pending text if there is much; call it regularly. */
dt_status dt_output_pass(dt_output *out, dt_error *err);
/* Number of bytes written and pending. */
size_t dt_output_place(const dt_output *out);
/* Ends the output; call it once for each open output. st DT_OK: writes the rest and renames the
 * file; other values discard it. Returns st, or the error of closing. */
dt_status dt_output_close(dt_output *out, dt_status st, dt_error *err);

#endif
