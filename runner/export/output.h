/* output: what an export writes: stdout, or a file that is whole, or is not there.
 *
 * A file is written beside its place and gets its name once all of it is on the disk: what breaks off (a full
 * disk, a signal) leaves the one that was there before.
 * Errors   DT_ERR_USAGE: something is there and may not be replaced; DT_ERR_IO
 */
#ifndef DT_EXPORT_OUTPUT_H
#define DT_EXPORT_OUTPUT_H

#include "base/arena.h"
#include "base/strbuf.h"

typedef struct dt_output {
    dt_strbuf text;               /* to be written: added to by whoever has something to say */
    size_t passed;                /* bytes that were written before it */
    const char *path, *temporary; /* NULL: stdout */
    int fd;
    bool replace; /* a file that is there */
} dt_output;

/* path NULL: stdout. What cannot be opened is closed already. */
dt_status dt_output_open(dt_output *out, const char *path, bool replace, dt_arena *arena,
                         dt_error *err);
/* To be called now and then: writes where there is much. */
dt_status dt_output_pass(dt_output *out, dt_error *err);
/* How far it has come, in bytes. */
size_t dt_output_place(const dt_output *out);
/* st: how writing went. DT_OK: the rest is written and the file gets its name; else nothing is left. Returns
 * st, or what went wrong now. Once for each that was opened. */
dt_status dt_output_close(dt_output *out, dt_status st, dt_error *err);

#endif
