/* device: where tensors are stored and ops run, as a struct of functions per backend; memory that is
 * counted before it is allocated; and values that are uploaded every step.
 *
 * Threads   one thread drives a device's ops (dp: one device per thread), and calls enter() when it
 *           comes from another device. Any thread can call everything else
 * Memory    allocated once at the start, in arenas; a step allocates nothing. If host_reads is
 *           false, only ops, copy_in, copy_out and queue.h may access device memory
 * CPU       `threads` OpenMP threads; calls return when everything is done
 * CUDA      asynchronous: ops return before they have run. synchronize() waits for them
 */
#ifndef DT_ENGINE_DEVICE_DEVICE_H
#define DT_ENGINE_DEVICE_DEVICE_H

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
    const char *name; /* backend: "cpu" or "cuda" */
    int index;
    int threads;     /* CPU: number of OpenMP threads */
    bool host_reads; /* the host can read and write its memory (CPU) */
    const struct dt_ops *ops;
    const struct dt_queues *queues;  /* queue.h: work concurrent with its ops */
    const struct dt_graphs *graphs;  /* queue.h: recorded ops; NULL on the CPU */
    const struct dt_nccl_link *nccl; /* device_cuda.h; NULL if not available */
    void *state;                     /* state of the backend: primitive cache, stream, handles */

    /* Zeroed, aligned to at least 64 bytes. DT_ERR_NOMEM with the size. */
    dt_status (*alloc)(struct dt_device *, void **out, size_t bytes, dt_error *err);
    void (*free)(struct dt_device *, void *memory);
    /* Host memory, zeroed, for copies that run while the host continues (pinned). */
    dt_status (*host_alloc)(struct dt_device *, void **out, size_t bytes, dt_error *err);
    void (*host_free)(struct dt_device *, void *memory);
    /* Total memory of the device, and its free part. */
    dt_status (*memory_info)(struct dt_device *, int64_t *free_bytes, int64_t *total_bytes,
                             dt_error *err);

    /* Copy between host and device; ordered with the ops, complete on return. */
    dt_status (*copy_in)(struct dt_device *, void *device_memory, const void *host, size_t bytes,
                         dt_error *err);
    dt_status (*copy_out)(struct dt_device *, void *host, const void *device_memory, size_t bytes,
                          dt_error *err);
    /* Copy from the memory of another device of the same kind, whose ops on that memory are done;
     * ordered with the ops of this device. */
    dt_status (*copy_from)(struct dt_device *, void *device_memory, struct dt_device *other,
                           const void *other_memory, size_t bytes, dt_error *err);
    /* Open a device of the same kind for replica n of a process, if this device is for replica 0: a
     * CPU with as many threads, or the n-th GPU after this one. */
    dt_status (*open_replica)(struct dt_device *, struct dt_device *out, int64_t n, dt_error *err);
    /* Make the calling thread the one that drives this device's ops. */
    dt_status (*enter)(struct dt_device *, dt_error *err);
    dt_status (*synchronize)(struct dt_device *, dt_error *err);
    void (*close)(struct dt_device *);
} dt_device;

/* threads 0: all cores available to this process. */
dt_status dt_device_open_cpu(dt_device *out, int threads, dt_error *err);
/* Open "cpu" or "cuda:N" (device_cuda.h). tf32: fp32 products may round their inputs to TF32. */
dt_status dt_device_open(dt_device *out, const char *name, int threads, bool tf32, dt_error *err);
void dt_device_close(dt_device *device); /* accepts a zeroed device */

/* A device arena: one block, allocated from front to back in multiples of 64 bytes. */
typedef struct dt_device_arena {
    dt_device *device;
    unsigned char *base;
    size_t used_bytes, capacity_bytes;
} dt_device_arena;

dt_status dt_device_arena_open(dt_device_arena *out, dt_device *device, size_t capacity_bytes,
                               dt_error *err);
/* Asserts that it fits: the capacity is computed by the same code. */
void *dt_device_arena_take(dt_device_arena *arena, size_t bytes);
void dt_device_arena_close(dt_device_arena *arena);

/* memory_layout: counts or allocates memory, with the same function for both.
 *
 * Purpose    a strategy or a pass describes its memory once. Without an arena the function only
 *            counts, with one it allocates, so that the size that is reported, the size that is
 *            allocated and the size that is used cannot differ
 * Ownership  the caller owns the arena
 */

typedef struct dt_layout {
    dt_device_arena *arena; /* where to allocate; NULL: count only */
    size_t bytes;           /* bytes taken so far */
} dt_layout;

/* Take `bytes` bytes. Returns NULL while counting. */
void *dt_layout_take(dt_layout *layout, size_t bytes);

/* Free everything taken since `bytes` bytes were in use, so that it is used again. */
void dt_layout_go_back(dt_layout *layout, size_t bytes);

/* Count what `lay_out` takes, open *arena with that size, and run `lay_out` on it. */
dt_status dt_layout_open(dt_device_arena *arena, dt_device *device,
                         void (*lay_out)(void *self, dt_layout *layout), void *self, dt_error *err);

/* upload_buffer: uploads values to the device every step, without waiting for the ops: by one copy
 * from pinned memory, ordered with the ops.
 *
 * Use        dt_upload_buffer_begin, write `host`, dt_upload_buffer_send; later ops see the values
 *            in `data`
 * Ownership  borrows the device; the caller may write `host` between begin and send
 * Threads    the one that drives the device's ops
 * Errors     those of queue.h
 */

typedef struct dt_upload_buffer {
    dt_device *device;
    void *data; /* the copy in device memory */
    void *host;
    size_t bytes;
    struct dt_device_event *taken; /* reached when `host` has been read */
} dt_upload_buffer;

dt_status dt_upload_buffer_open(dt_upload_buffer *out, dt_device *device, size_t bytes,
                                dt_error *err);
/* accepts a zeroed or partly opened buffer */
void dt_upload_buffer_close(dt_upload_buffer *upload);

/* Wait until the previous send has read `host`; it usually has by the next step. */
dt_status dt_upload_buffer_begin(dt_upload_buffer *upload, dt_error *err);
dt_status dt_upload_buffer_send(dt_upload_buffer *upload, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
