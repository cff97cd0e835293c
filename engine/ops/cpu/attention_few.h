/* attention_few: computes the attention forward pass of one query per sequence, for generation with a KV cache.
 *
 * Method     keys and values are read once, in place, for all query heads that share them: reading them takes
 *            most of the time
 * Tasks      one task is a whole key head of a sequence: results depend neither on the thread count nor on the
 *            other sequences
 * Types      as in attention_int.h; the arithmetic is in fp32
 */
#ifndef DT_ENGINE_OPS_CPU_ATTENTION_FEW_H
#define DT_ENGINE_OPS_CPU_ATTENTION_FEW_H

#include "engine/ops/cpu/cpu_int.h"
#include "engine/ops/ops.h"

/* Like attention_forward, without dropout. x->q.rows must be 1. */
dt_status DT_CPU_NAME(attention_few)(dt_device *device, dt_tensor *out, dt_tensor *lse,
                                     const dt_qkv *x, const dt_attention_args *args, dt_error *err);

#endif
