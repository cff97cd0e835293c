/* bundle: the engine and the libraries that it needs beyond glibc, as they lie on this machine.
 *
 * With the GPU part for nodes whose ranks use GPUs: libdtrun-cuda.so beside the engine, and CUDA's
 * libraries (0.9 GB, 0.6 packed). The driver is the node's.
 *
 * On a node it is CACHE/bundles/HASH/bin/dtrun-engine and .../lib/, where the engine's run path
 * finds them. HASH is of all names and contents: the same programs are the same bundle, whoever
 * sends them. glibc itself is the node's: loader and libc belong together.
 *
 * Ownership  everything lives in the arena
 * Threads    send may run for several nodes at once
 */
#ifndef DT_RUNNER_NODE_SETUP_BUNDLE_H
#define DT_RUNNER_NODE_SETUP_BUNDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "engine/checkpoint/digest.h"
#include "runner/node_setup/glibc.h"

typedef struct dt_bundle_file {
    const char *name; /* "bin/dtrun-engine", "lib/libdnnl.so.2" */
    const char *path; /* here */
    int64_t bytes;
    char digest[DT_DIGEST_SIZE];
} dt_bundle_file;

typedef struct dt_bundle {
    char hash[DT_DIGEST_SIZE];
    char glibc[DT_GLIBC_SIZE]; /* the lowest that its programs run with */
    int64_t bytes, file_count;
    dt_bundle_file *files;
} dt_bundle;

/* Reads all of it: some ten milliseconds, a second with `gpus`. DT_ERR_IO where the installation is
 * incomplete, DT_ERR_UNSUPPORTED where it has no GPU part. */
dt_status dt_bundle_make(dt_bundle *out, bool gpus, dt_arena *arena, dt_error *err);

/* To the node, through the agent that is there. */
dt_status dt_upload_bundle(const dt_bundle *bundle, const char *node, const char *agent,
                           void (*progress)(void *context, const char *text), void *context,
                           const atomic_bool *cancelled, dt_error *err);

#endif
