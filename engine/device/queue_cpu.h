/* queue_cpu: implements queue.h for the CPU, where all operations are synchronous. */
#ifndef DT_ENGINE_DEVICE_QUEUE_CPU_H
#define DT_ENGINE_DEVICE_QUEUE_CPU_H

#include "engine/device/queue.h"

extern const dt_queues dt_cpu_queues;

#endif
