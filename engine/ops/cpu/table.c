/* table: fills dt_ops with the CPU ops of one instruction set (isa.h). */
#include "engine/ops/cpu/ops_int.h"

#define ENTRY(op) .op = DT_CPU_NAME(op),

_Static_assert(DT_OPS_LIST_IS_WHOLE, "ops.h has an op that list.h lacks");

extern const dt_ops DT_CPU_TABLE;

const dt_ops DT_CPU_TABLE = {DT_OPS_NEEDED(ENTRY)};
