/* bundle: collects the engine and its libraries except glibc from this machine, and copies them to nodes.
 *
 * For nodes whose ranks use GPUs it includes the GPU part: libdtrun-cuda.so and CUDA's libraries (0.9 GB, 0.6
 * compressed). The driver is the node's.
 *
 * On a node the bundle is CACHE/bundles/HASH/bin/dtrun-engine and .../lib/, where the engine's run path finds the
 * libraries. HASH covers all names and contents, so that the same programs are the same bundle from any launch machine.
 * The node's glibc is used, since loader and libc must match.
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
    const char *path; /* on this machine */
    int64_t bytes;
    char digest[DT_DIGEST_SIZE];
} dt_bundle_file;

typedef struct dt_bundle {
    char hash[DT_DIGEST_SIZE];
    char glibc[DT_GLIBC_SIZE]; /* the oldest version that its programs run with */
    int64_t bytes, file_count;
    dt_bundle_file *files;
} dt_bundle;

/* Reads all files, which takes about ten milliseconds, or a second with `gpus`. DT_ERR_IO: the
 * installation is incomplete; DT_ERR_UNSUPPORTED: it has no GPU part. */
dt_status dt_bundle_make(dt_bundle *out, bool gpus, dt_arena *arena, dt_error *err);

/* Copies the bundle to the node, through the agent on the node. */
dt_status dt_upload_bundle(const dt_bundle *bundle, const char *node, const char *agent,
                           void (*progress)(void *context, const char *text), void *context,
                           const atomic_bool *cancelled, dt_error *err);

#endif
