/* device: where tensors live and ops run. A struct of functions per backend.
 *
 * Threads   one thread drives a device's ops (dp: one device per thread), and calls enter() when it
 *           comes from another device. Everything else may be called by any thread
 * Memory    taken once at the start, in arenas; nothing is taken inside a step. Where host_reads is
 *           false no pointer into it may be followed outside of ops: copy_in, copy_out, queue.h
 * CPU       `threads` OpenMP threads; everything is done when a call returns
 * CUDA      asynchronous: ops return before they have run. synchronize() waits for them
 */
#ifndef DT_ENGINE_DEVICE_H
#define DT_ENGINE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_graphs;
struct dt_nccl_link;
struct dt_ops;
struct dt_queues;

typedef struct dt_device {
    const char *name; /* "cpu", "cuda" */
    int index;
    int threads;     /* CPU */
    bool host_reads; /* the host reads and writes its memory: the CPU */
    const struct dt_ops *ops;
    const struct dt_queues *queues;  /* queue.h: what it does beside its ops */
    const struct dt_graphs *graphs;  /* graph.h: ops that are recorded; NULL: the CPU */
    const struct dt_nccl_link *nccl; /* nccl_link.h; NULL where there is none */
    void *state;                     /* the backend's own: primitive cache, stream, handles */

    /* Zeroed, aligned to 64 bytes or more. DT_ERR_NOMEM with the size. */
    dt_status (*alloc)(struct dt_device *, void **out, size_t bytes, dt_error *err);
    void (*free)(struct dt_device *, void *memory);
    /* Host memory, zeroed, that the device copies from and to while the host continues (pinned). */
    dt_status (*host_alloc)(struct dt_device *, void **out, size_t bytes, dt_error *err);
    void (*host_free)(struct dt_device *, void *memory);
    /* What the device has, and what of it nobody holds. */
    dt_status (*memory_info)(struct dt_device *, int64_t *free_bytes, int64_t *total_bytes,
                             dt_error *err);

    /* Either way between host and device; ordered with the ops, done when it returns. */
    dt_status (*copy_in)(struct dt_device *, void *device_memory, const void *host, size_t bytes,
                         dt_error *err);
    dt_status (*copy_out)(struct dt_device *, void *host, const void *device_memory, size_t bytes,
                          dt_error *err);
    /* From the memory of another device of the same kind, which has done what it was to do there;
     * ordered with the ops of this one. */
    dt_status (*copy_from)(struct dt_device *, void *device_memory, struct dt_device *other,
                           const void *other_memory, size_t bytes, dt_error *err);
    /* Another one of the kind, for replica n of a process that has this one for replica 0: as many
     * threads, or the n-th card after this one. */
    dt_status (*open_replica)(struct dt_device *, struct dt_device *out, int64_t n, dt_error *err);
    /* The calling thread drives this device's ops from here on. */
    dt_status (*enter)(struct dt_device *, dt_error *err);
    dt_status (*synchronize)(struct dt_device *, dt_error *err);
    void (*close)(struct dt_device *);
} dt_device;

/* threads 0: all cores that this process may use. */
dt_status dt_device_open_cpu(dt_device *out, int threads, dt_error *err);
/* "cpu", or "cuda:N" (device_cuda.h). tf32: fp32 products may round their inputs to it. */
dt_status dt_device_open(dt_device *out, const char *name, int threads, bool tf32, dt_error *err);
void dt_device_close(dt_device *device); /* accepts a zeroed device */

/* A device arena: one block, bump-allocated in multiples of 64 bytes, handed out as pointers. */
typedef struct dt_device_arena {
    dt_device *device;
    unsigned char *base;
    size_t used_bytes, capacity_bytes;
} dt_device_arena;

dt_status dt_device_arena_open(dt_device_arena *out, dt_device *device, size_t capacity_bytes,
                               dt_error *err);
/* A bug (DT_ASSERT) where it does not fit: capacity comes from the same arithmetic. */
void *dt_device_arena_take(dt_device_arena *arena, size_t bytes);
void dt_device_arena_close(dt_device_arena *arena);

#ifdef __cplusplus
}
#endif
#endif
