/* ops_int: every op of the table, declared once per instruction set with the type that ops.h
 * gives it.
 */
#ifndef DT_ENGINE_OPS_CPU_OPS_INT_H
#define DT_ENGINE_OPS_CPU_OPS_INT_H

#include "engine/ops/cpu/cpu_int.h"
#include "engine/ops/list.h"

#define DT_CPU_DECLARE(op) extern __typeof__(*((dt_ops *)0)->op) DT_CPU_NAME(op);

DT_OPS_NEEDED(DT_CPU_DECLARE)

#endif
