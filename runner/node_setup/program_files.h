/* program_files: returns the digest of a program or library and the glibc that it needs, without reading a file that
 * did not change: those of a bundle have 100 MB, with the GPU part 1 GB.
 *
 * CACHE/programs has a line for each file, "BYTES INODE DEVICE MODIFIED CHANGED DIGEST GLIBC PATH" (GLIBC "-": none),
 * which is valid while the file matches. As in workdir/contents.h, CHANGED (ctime) cannot be set, and a file that changed
 * within the last two seconds is not remembered.
 *
 * Threads    any, in any number of processes; one reader, one thread
 * Errors     DT_ERR_IO: the file cannot be read, or is empty. A cache that cannot be written is ignored
 */
#ifndef DT_RUNNER_NODE_SETUP_PROGRAM_FILES_H
#define DT_RUNNER_NODE_SETUP_PROGRAM_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "engine/checkpoint/digest.h"
#include "runner/node_setup/glibc.h"

typedef struct dt_program_files {
    dt_strbuf path, lines; /* path: of the cache; "": none */
    bool changed;
} dt_program_files;

typedef struct dt_program_facts {
    int64_t bytes;
    char digest[DT_DIGEST_SIZE], glibc[DT_GLIBC_SIZE]; /* glibc: "" if it needs none */
} dt_program_facts;

void dt_program_files_open(dt_program_files *out);
dt_status dt_program_files_look(dt_program_facts *out, dt_program_files *files, const char *path,
                                dt_error *err);
void dt_program_files_close(dt_program_files *files); /* writes what is new */

#endif
