/* queue_cuda: implements queue.h by streams and events. */
#ifndef DT_ENGINE_DEVICE_QUEUE_CUDA_CUH
#define DT_ENGINE_DEVICE_QUEUE_CUDA_CUH

#include "engine/device/queue.h"
#include "engine/ops/cuda/cuda_int.cuh"

extern const dt_queues dt_cuda_queues;

/* Implements dt_device's enter (device_cuda.cu). */
dt_status dt_cuda_enter(dt_device *device, dt_error *err);

/* The queue's stream; NULL: the ops' stream. */
static inline cudaStream_t dt_cuda_stream_of(dt_device *device, dt_queue *queue)
{
    return queue != NULL ? (cudaStream_t)(void *)queue : dt_cuda_of(device)->stream;
}

#endif
