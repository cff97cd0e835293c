/* nccl_link: NCCL as libdtrun-cuda.so offers it to nccl.c: the few calls that it is built on, none
 * of which waits for other ranks. What can go wrong between ranks (time, peers, order) is nccl.c's.
 *
 * Threads  one at a time per communicator; `reached` any
 * Errors   DT_ERR_COMM with NCCL's own words: the communicator can only be aborted after that
 */
#ifndef DT_ENGINE_DEVICE_NCCL_LINK_H
#define DT_ENGINE_DEVICE_NCCL_LINK_H

#include "engine/device/queue.h"
#include "engine/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the library exports under this name; missing where it was built without nccl.h. Changes only
 * together with the engine. */
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

/* Sums, of F32 or BF16. elems as in comm.h: of `data`, of `out`, or bytes of what a rank gives. */
typedef struct dt_nccl_call {
    dt_nccl_kind kind;
    void *out;
    const void *in;
    int64_t elems;
    dt_dtype dtype; /* of sums; else bytes are moved */
    int64_t root;
} dt_nccl_call;

typedef struct dt_nccl_link {
    /* NCCL's own number, the same for the same release. Looks for the library: 0, with the reason in
     * the log, where there is none; nothing else may be called then. */
    int (*version)(void);
    /* Which card it is, wherever it is seen from. */
    dt_status (*card)(dt_device *, uint8_t *card, dt_error *err);
    dt_status (*make_id)(uint8_t *id, dt_error *err);
    /* Begins to connect. *out is to be aborted also where it fails, unless it is NULL. */
    dt_status (*connect)(dt_nccl **out, dt_device *, const uint8_t *id, int64_t rank,
                         int64_t world_size, dt_error *err);
    /* How it is, and whether the last connect or call is still being taken: no other may be made
     * before it is not. */
    dt_status (*state)(dt_nccl *, bool *busy, dt_error *err);
    dt_status (*call)(dt_nccl *, const dt_nccl_call *, dt_queue *, dt_error *err);
    /* Whether all is done that was queued before the event. */
    dt_status (*reached)(dt_device *, dt_device_event *, bool *out, dt_error *err);
    /* What is queued ends without being done. Frees. */
    void (*abort)(dt_nccl *);
} dt_nccl_link;

#ifdef __cplusplus
}
#endif
#endif
