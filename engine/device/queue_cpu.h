/* queue_cpu: the CPU's queues, of which there are none. */
#ifndef DT_ENGINE_DEVICE_QUEUE_CPU_H
#define DT_ENGINE_DEVICE_QUEUE_CPU_H

#include "engine/device/queue.h"

extern const dt_queues dt_cpu_queues;

#endif
