/* ops_int: declares every op, once per instruction set, with its type from ops.h. */
#ifndef DT_ENGINE_OPS_CPU_OPS_INT_H
#define DT_ENGINE_OPS_CPU_OPS_INT_H

#include "engine/ops/cpu/cpu_int.h"
#include "engine/ops/list.h"

#define DT_CPU_DECLARE(op) extern __typeof__(*((dt_ops *)0)->op) DT_CPU_NAME(op);

DT_OPS_NEEDED(DT_CPU_DECLARE)

#endif
