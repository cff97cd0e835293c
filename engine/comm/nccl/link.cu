/* The calls of nccl_link.h, on communicators that never block the host (ncclConfig_t.blocking 0).
 */
#include <nccl.h>
#include <string.h>

#include "engine/device/nccl_link.h"
#include "engine/device/queue_cuda.cuh"

static_assert(DT_NCCL_ID_BYTES == NCCL_UNIQUE_ID_BYTES, "the id goes through the rendezvous");

static ncclComm_t comm_of(dt_nccl *nccl)
{
    return (ncclComm_t)(void *)nccl;
}

/* NCCL keeps the words of what went wrong last; those say more than the code. */
static dt_status check(ncclResult_t result, ncclComm_t comm, const char *what, dt_error *err)
{
    const char *words;

    if (result == ncclSuccess || result == ncclInProgress)
        return DT_OK;
    words = ncclGetLastError(comm);
    return DT_FAIL(err, DT_ERR_COMM, "nccl: %s: %s%s%s", what, ncclGetErrorString(result),
                   words != NULL && words[0] != '\0' ? ": " : "", words != NULL ? words : "");
}

static int version(void)
{
    int number = 0;

    return ncclGetVersion(&number) == ncclSuccess ? number : 0;
}

static dt_status card(dt_device *device, uint8_t *out, dt_error *err)
{
    cudaDeviceProp properties;
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_check(cudaGetDeviceProperties(&properties, dt_cuda_of(device)->index),
                         "looking at a card", err));
    static_assert(sizeof(properties.uuid) == DT_NCCL_CARD_BYTES, "a card is told by its UUID");
    memcpy(out, &properties.uuid, DT_NCCL_CARD_BYTES);
out:
    return st;
}

static dt_status make_id(uint8_t *out, dt_error *err)
{
    ncclUniqueId id;
    dt_status st = DT_OK;

    DT_TRY(check(ncclGetUniqueId(&id), NULL, "making an id", err));
    memcpy(out, &id, sizeof(id));
out:
    return st;
}

static dt_status connect(dt_nccl **out, dt_device *device, const uint8_t *id, int64_t rank,
                         int64_t world_size, dt_error *err)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL;
    ncclUniqueId unique;
    dt_status st = DT_OK;

    *out = NULL;
    memcpy(&unique, id, sizeof(unique));
    config.blocking = 0;
    DT_TRY(dt_cuda_enter(device, err));
    st = check(ncclCommInitRankConfig(&comm, (int)world_size, unique, (int)rank, &config), NULL,
               "connecting", err);
    *out = (dt_nccl *)(void *)comm;
out:
    return st;
}

static dt_status state(dt_nccl *nccl, bool *busy, dt_error *err)
{
    ncclResult_t last = ncclSuccess;
    dt_status st = DT_OK;

    *busy = false;
    DT_TRY(check(ncclCommGetAsyncError(comm_of(nccl), &last), comm_of(nccl), "its state", err));
    DT_TRY(check(last, comm_of(nccl), "between the ranks", err));
    *busy = last == ncclInProgress;
out:
    return st;
}

static dt_status call(dt_nccl *nccl, const dt_nccl_call *c, dt_queue *queue, dt_error *err)
{
    ncclDataType_t type = c->dtype == DT_BF16 ? ncclBfloat16 : ncclFloat32;
    cudaStream_t stream = (cudaStream_t)(void *)queue;
    size_t elems = (size_t)c->elems;
    ncclComm_t comm = comm_of(nccl);

    switch (c->kind) {
    case DT_NCCL_ALL_REDUCE:
        return check(ncclAllReduce(c->in, c->out, elems, type, ncclSum, comm, stream), comm,
                     "all-reduce", err);
    case DT_NCCL_REDUCE_SCATTER:
        return check(ncclReduceScatter(c->in, c->out, elems, type, ncclSum, comm, stream), comm,
                     "reduce-scatter", err);
    case DT_NCCL_ALL_GATHER:
        return check(ncclAllGather(c->in, c->out, elems, ncclInt8, comm, stream), comm,
                     "all-gather", err);
    case DT_NCCL_BROADCAST:
        return check(ncclBroadcast(c->in, c->out, elems, ncclInt8, (int)c->root, comm, stream),
                     comm, "broadcast", err);
    }
    return DT_FAIL(err, DT_ERR_UNSUPPORTED, "nccl: no collective %d", (int)c->kind);
}

static dt_status reached(dt_device *device, dt_device_event *event, bool *out, dt_error *err)
{
    cudaError_t result;
    dt_status st = DT_OK;

    *out = false;
    DT_TRY(dt_cuda_enter(device, err));
    result = cudaEventQuery((cudaEvent_t)(void *)event);
    if (result == cudaErrorNotReady) {
        (void)cudaGetLastError(); /* it is kept as one, and is none */
        return DT_OK;
    }
    DT_TRY(dt_cuda_check(result, "waiting for a collective", err));
    *out = true;
out:
    return st;
}

/* Also the way to close: finalizing would talk to the other ranks, which may be gone. */
static void abort_comm(dt_nccl *nccl)
{
    (void)ncclCommAbort(comm_of(nccl));
}

extern "C" __attribute__((visibility("default"))) const dt_nccl_link dt_nccl_entry_1 = {
    version, card, make_id, connect, state, call, reached, abort_comm};
