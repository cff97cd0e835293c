/* link: implements dt_nccl_link of device_cuda.h, with communicators that never block the host
 * (ncclConfig_t.blocking 0). The library is loaded when its version is requested: a machine may not have it.
 */
#include <nccl.h>
#include <string.h>

#include "base/library.h"
#include "base/log.h"
#include "engine/device/device_cuda.h"
#include "engine/device/queue_cuda.cuh"

static_assert(DT_NCCL_ID_BYTES == NCCL_UNIQUE_ID_BYTES, "the id goes through the rendezvous");

/* The functions that are used; each X(name) has the type declared in nccl.h. */
#define NCCL_CALLS(X)         \
    X(ncclGetVersion)         \
    X(ncclGetUniqueId)        \
    X(ncclGetErrorString)     \
    X(ncclGetLastError)       \
    X(ncclCommInitRankConfig) \
    X(ncclCommGetAsyncError)  \
    X(ncclCommAbort)          \
    X(ncclAllReduce)          \
    X(ncclReduceScatter)      \
    X(ncclAllGather)          \
    X(ncclBroadcast)

#define MEMBER(name) decltype(&::name) name;
static struct {
    NCCL_CALLS(MEMBER)
} nccl_calls; /* NCCL's functions, set by the first successful version() */

static ncclComm_t comm_of(dt_nccl *nccl)
{
    return (ncclComm_t)(void *)nccl;
}

/* Convert a result to a status, with NCCL's text of the last error, which says more than the code. */
static dt_status check(ncclResult_t result, ncclComm_t comm, const char *what, dt_error *err)
{
    const char *words;

    if (result == ncclSuccess || result == ncclInProgress)
        return DT_OK;
    words = nccl_calls.ncclGetLastError(comm);
    return DT_FAIL(err, DT_ERR_COMM, "nccl: %s: %s%s%s", what,
                   nccl_calls.ncclGetErrorString(result),
                   words != NULL && words[0] != '\0' ? ": " : "", words != NULL ? words : "");
}

#define FIND(name) DT_TRY(dt_library_find(&nccl_calls.name, library, #name, err));

static dt_status find_calls(dt_error *err)
{
    dt_status st = DT_OK;
    void *library;

    DT_TRY(dt_library_open(&library, "libnccl.so.2", "DTRUN_NCCL", err));
    NCCL_CALLS(FIND)
out:
    return st;
}

static int version(void)
{
    dt_error why = DT_ERROR_INIT;
    int number = 0;

    if (find_calls(&why) != DT_OK) {
        dt_log_warn("cannot use NCCL: %s", why.message);
        return 0;
    }
    return nccl_calls.ncclGetVersion(&number) == ncclSuccess ? number : 0;
}

static dt_status card(dt_device *device, uint8_t *out, dt_error *err)
{
    cudaDeviceProp properties;
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_check(cudaGetDeviceProperties(&properties, dt_cuda_of(device)->index),
                         "querying a GPU", err));
    static_assert(sizeof(properties.uuid) == DT_NCCL_CARD_BYTES,
                  "a card is identified by its UUID");
    memcpy(out, &properties.uuid, DT_NCCL_CARD_BYTES);
out:
    return st;
}

static dt_status make_id(uint8_t *out, dt_error *err)
{
    ncclUniqueId id;
    dt_status st = DT_OK;

    DT_TRY(check(nccl_calls.ncclGetUniqueId(&id), NULL, "making an id", err));
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
    st =
        check(nccl_calls.ncclCommInitRankConfig(&comm, (int)world_size, unique, (int)rank, &config),
              NULL, "connecting", err);
    *out = (dt_nccl *)(void *)comm;
out:
    return st;
}

static dt_status state(dt_nccl *nccl, bool *busy, dt_error *err)
{
    ncclResult_t last = ncclSuccess;
    dt_status st = DT_OK;

    *busy = false;
    DT_TRY(check(nccl_calls.ncclCommGetAsyncError(comm_of(nccl), &last), comm_of(nccl), "its state",
                 err));
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
        return check(nccl_calls.ncclAllReduce(c->in, c->out, elems, type, ncclSum, comm, stream),
                     comm, "all-reduce", err);
    case DT_NCCL_REDUCE_SCATTER:
        return check(
            nccl_calls.ncclReduceScatter(c->in, c->out, elems, type, ncclSum, comm, stream), comm,
            "reduce-scatter", err);
    case DT_NCCL_ALL_GATHER:
        return check(nccl_calls.ncclAllGather(c->in, c->out, elems, ncclInt8, comm, stream), comm,
                     "all-gather", err);
    case DT_NCCL_BROADCAST:
        return check(
            nccl_calls.ncclBroadcast(c->in, c->out, elems, ncclInt8, (int)c->root, comm, stream),
            comm, "broadcast", err);
    }
    return DT_FAIL(err, DT_ERR_UNSUPPORTED, "nccl: unknown collective %d", (int)c->kind);
}

static dt_status reached(dt_device *device, dt_device_event *event, bool *out, dt_error *err)
{
    cudaError_t result;
    dt_status st = DT_OK;

    *out = false;
    DT_TRY(dt_cuda_enter(device, err));
    result = cudaEventQuery((cudaEvent_t)(void *)event);
    if (result == cudaErrorNotReady) {
        (void)cudaGetLastError(); /* clears it: not ready is not a failure */
        return DT_OK;
    }
    DT_TRY(dt_cuda_check(result, "waiting for a collective", err));
    *out = true;
out:
    return st;
}

/* Also used to close: finalizing would communicate with the other ranks, which may be dead. */
static void abort_comm(dt_nccl *nccl)
{
    (void)nccl_calls.ncclCommAbort(comm_of(nccl));
}

extern "C" __attribute__((visibility("default"))) const dt_nccl_link dt_nccl_entry_1 = {
    version, card, make_id, connect, state, call, reached, abort_comm};
