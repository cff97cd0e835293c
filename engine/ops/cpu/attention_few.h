/* attention_few: attention forward of one query a sequence, as where a text is made token by token.
 *
 * Method     keys and values are read once, as they lie, for all heads of queries that go with them: what it
 *            takes is the reading of them
 * Tasks      a head of keys of a sequence, whole: results depend neither on the thread count nor on the other
 *            sequences
 * Types      as attention_int.h; all is computed in fp32
 */
#ifndef DT_ENGINE_OPS_CPU_ATTENTION_FEW_H
#define DT_ENGINE_OPS_CPU_ATTENTION_FEW_H

#include "engine/ops/cpu/cpu_int.h"
#include "engine/ops/ops.h"

/* As attention_forward, without dropout, of x->q.rows 1. */
dt_status DT_CPU_NAME(attention_few)(dt_device *device, dt_tensor *out, dt_tensor *lse,
                                     const dt_qkv *x, const dt_attention_args *args, dt_error *err);

#endif
