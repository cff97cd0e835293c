/* attention_choice: whose forward attention runs for a shape, ours or cuDNN's.
 *
 * Rule       both are measured when a shape is first met; cuDNN's must be 2 % faster. The choice is
 *            kept with the algorithms of the products (tuned.h), since the other one gives other
 *            bits: the first rank of a node that measures decides for all, now and later. Where
 *            cuDNN fails in any way it is ours; where for want of memory, that is not kept
 * Switch     DTRUN_ATTENTION in the environment of the ranks: "own" leaves cuDNN alone, "cudnn"
 *            takes it wherever it works, however long it takes; neither is kept. Unset, or
 *            "fastest": the rule
 * Log        a line for each shape: which, and why
 */
#ifndef DT_ENGINE_OPS_CUDA_ATTENTION_CHOICE_H
#define DT_ENGINE_OPS_CUDA_ATTENTION_CHOICE_H

#include "engine/ops/cuda/cudnn_graph.h"
#include "engine/ops/cuda/tuned.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_attention_wish {
    DT_ATTENTION_FASTEST,
    DT_ATTENTION_OWN,
    DT_ATTENTION_CUDNN
} dt_attention_wish;

/* DT_ERR_USAGE for an unknown one. */
dt_status dt_attention_wish_read(dt_attention_wish *out, dt_error *err);

typedef struct dt_attention_question {
    dt_attention_wish wish; /* not DT_ATTENTION_OWN: then there is nothing to ask */
    dt_tuned *tuned;
    const char *machine; /* card, driver, cuBLASLt: how keys begin */
    size_t version;      /* of cuDNN */
    dt_cudnn_shape shape;
    void *context; /* of the functions */
    /* Makes cuDNN's kernel. */
    dt_status (*build)(void *context, dt_error *err);
    /* Milliseconds of both; an error where cuDNN's results are not ours, or not twice the same. */
    dt_status (*measure)(void *context, float *own_ms, float *cudnn_ms, dt_error *err);
} dt_attention_question;

/* DT_ATTENTION_OWN or, with its kernel built, DT_ATTENTION_CUDNN. */
dt_attention_wish dt_attention_choose(const dt_attention_question *question);

#ifdef __cplusplus
}
#endif
#endif
