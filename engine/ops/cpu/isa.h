/* isa: which copy of the ops runs on this processor.
 *
 * The ops are compiled for plain x86-64 ("x86-64"; on other processors this is the only copy),
 * for AVX2 with FMA ("avx2", x86-64-v3), for AVX-512 ("avx512", x86-64-v4) and for that with
 * products of bf16 ("avx512_bf16"). The best that the processor has is taken; DTRUN_CPU_ISA names
 * another, for tests. It is read once, when a device is opened. oneDNN picks for itself
 * (ONEDNN_MAX_CPU_ISA).
 *
 * Errors  DT_ERR_USAGE for a name that is none; DT_ERR_UNSUPPORTED for one that this processor
 *         cannot run
 */
#ifndef DT_ENGINE_OPS_CPU_ISA_H
#define DT_ENGINE_OPS_CPU_ISA_H

#include "engine/ops/ops.h"

/* Both point to constants. */
dt_status dt_cpu_isa_pick(const dt_ops **ops, const char **name, dt_error *err);

#endif
