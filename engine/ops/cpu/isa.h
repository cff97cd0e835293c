/* isa: chooses the build of the CPU ops for this processor.
 *
 * The ops are compiled for plain x86-64 ("x86-64"; the only build on other processors), for AVX2 with
 * FMA ("avx2", x86-64-v3), for AVX-512 ("avx512", x86-64-v4), and for AVX-512 with bf16 products
 * ("avx512_bf16"). The fastest build that the processor supports is used. For tests, the environment
 * variable DTRUN_CPU_ISA names another one; it is read when a device is opened. oneDNN chooses its
 * instruction set independently (ONEDNN_MAX_CPU_ISA). The build avx512_bf16 also uses AMX where the processor
 * has it (product.h).
 *
 * Errors  DT_ERR_USAGE for an unknown name in DTRUN_CPU_ISA; DT_ERR_UNSUPPORTED for a build that this
 *         processor cannot run
 */
#ifndef DT_ENGINE_OPS_CPU_ISA_H
#define DT_ENGINE_OPS_CPU_ISA_H

#include "engine/ops/ops.h"

/* Gives the table of ops and the name of the build; both are constants. */
dt_status dt_cpu_isa_pick(const dt_ops **ops, const char **name, dt_error *err);

#endif
