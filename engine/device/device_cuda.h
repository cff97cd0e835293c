/* device_cuda: what libdtrun-cuda.so has for the engine, which loads it when a GPU is requested: GPUs as
 * devices, and the NCCL calls for engine/comm/nccl. */
#ifndef DT_ENGINE_DEVICE_DEVICE_CUDA_H
#define DT_ENGINE_DEVICE_DEVICE_CUDA_H

#include "engine/device/device.h"
#include "engine/device/queue.h"
#include "engine/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The symbol that the library exports. It must come from the same build as the engine. */
#define DT_CUDA_LIBRARY "libdtrun-cuda.so"
#define DT_CUDA_ENTRY   "dt_cuda_entry_1"

typedef struct dt_cuda_card {
    char name[256];
    char pci[32]; /* PCI address, for example "00000000:3B:00.0" */
    int64_t free_bytes, total_bytes;
    int processors, major, minor;
} dt_cuda_card;

typedef struct dt_cuda_entry {
    size_t device_bytes; /* sizeof(dt_device), to detect a library of another build */
    /* number of GPUs; 0 if there is a driver but no GPU */
    dt_status (*count)(int *out, dt_error *err);
    dt_status (*card)(dt_cuda_card *out, int index, dt_error *err);
    dt_status (*open)(dt_device *out, int index, bool tf32, dt_error *err);
} dt_cuda_entry;

/* Load the library. DT_ERR_UNSUPPORTED naming what is missing: the library or the driver. */
dt_status dt_cuda_load(const dt_cuda_entry **out, dt_error *err);

/* nccl_link: declares the NCCL calls that libdtrun-cuda.so provides to nccl.c. None of them waits for
 * other ranks. nccl.c handles failures between ranks (timeouts, dead peers, order).
 *
 * Threads  one at a time per communicator; `reached` any
 * Errors   DT_ERR_COMM with NCCL's message: the communicator can only be aborted after that
 */

/* The symbol that the library exports; missing if it was built without nccl.h. It must come from
 * the same build as the engine. */
#define DT_NCCL_ENTRY "dt_nccl_entry_1"

#define DT_NCCL_ID_BYTES   128
#define DT_NCCL_CARD_BYTES 16

typedef struct dt_nccl dt_nccl;

typedef enum dt_nccl_kind {
    DT_NCCL_ALL_REDUCE,
    DT_NCCL_REDUCE_SCATTER,
    DT_NCCL_ALL_GATHER,
    DT_NCCL_BROADCAST
} dt_nccl_kind;

/* Sums, of F32 or BF16. elems as in comm.h: elements of `data` or `out`, or the bytes that a rank
 * contributes. */
typedef struct dt_nccl_call {
    dt_nccl_kind kind;
    void *out;
    const void *in;
    int64_t elems;
    dt_dtype dtype; /* element type of sums; other kinds move bytes */
    int64_t root;
} dt_nccl_call;

typedef struct dt_nccl_link {
    /* NCCL's version number. Loads the library: 0, with the reason in the log, if it is missing;
     * then no other function may be called. */
    int (*version)(void);
    /* An identifier of the GPU, the same in every process. */
    dt_status (*card)(dt_device *, uint8_t *card, dt_error *err);
    dt_status (*make_id)(uint8_t *id, dt_error *err);
    /* Start to connect. On failure *out must be aborted too, unless it is NULL. */
    dt_status (*connect)(dt_nccl **out, dt_device *, const uint8_t *id, int64_t rank,
                         int64_t world_size, dt_error *err);
    /* Check for errors, and whether NCCL is still accepting the last connect or call: no other call
     * may be made while it is. */
    dt_status (*state)(dt_nccl *, bool *busy, dt_error *err);
    dt_status (*call)(dt_nccl *, const dt_nccl_call *, dt_queue *, dt_error *err);
    /* Whether everything queued before the event is done. */
    dt_status (*reached)(dt_device *, dt_device_event *, bool *out, dt_error *err);
    /* End what is queued without completing it, and free the communicator. */
    void (*abort)(dt_nccl *);
} dt_nccl_link;

#ifdef __cplusplus
}
#endif

#endif
