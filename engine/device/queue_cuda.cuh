/* queue_cuda: streams and events under the names of queue.h. */
#ifndef DT_ENGINE_DEVICE_QUEUE_CUDA_CUH
#define DT_ENGINE_DEVICE_QUEUE_CUDA_CUH

#include "engine/device/queue.h"
#include "engine/ops/cuda/cuda_int.cuh"

extern const dt_queues dt_cuda_queues;

/* device_cuda.cu: dt_device's enter. */
dt_status dt_cuda_enter(dt_device *device, dt_error *err);

/* NULL is the ops' stream. */
static inline cudaStream_t dt_cuda_stream_of(dt_device *device, dt_queue *queue)
{
    return queue != NULL ? (cudaStream_t)(void *)queue : dt_cuda_of(device)->stream;
}

#endif
