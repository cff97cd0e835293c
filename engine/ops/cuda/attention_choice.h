/* attention_choice: which of two kernels computes attention of a shape: the one that there always is, or a
 * rival: cuDNN's in place of ours, or ours for sm_90a in place of ours for sm_80.
 *
 * Rule       both are measured when a shape is first met; the rival must be 2 % faster. The choice is
 *            kept with the algorithms of the products (tuned.h), since the other one gives other
 *            bits: the first rank of a node that measures decides for all, now and later. Where
 *            the rival fails in any way it is not taken; where for want of memory, that is not kept
 * Switch     DTRUN_ATTENTION in the environment of the ranks: "own" leaves cuDNN alone, "cudnn"
 *            takes it wherever it works, however long it takes; "mma" is ours for sm_80 alone, "wgmma"
 *            ours for sm_90a wherever it has a kernel, and neither asks cuDNN or measures. None is kept.
 *            Unset, or "fastest": the rule
 * Log        a line for each shape: which, and why
 */
#ifndef DT_ENGINE_OPS_CUDA_ATTENTION_CHOICE_H
#define DT_ENGINE_OPS_CUDA_ATTENTION_CHOICE_H

#include "base/error.h"
#include "engine/ops/cuda/tuned.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_attention_wish {
    DT_ATTENTION_FASTEST,
    DT_ATTENTION_OWN,
    DT_ATTENTION_CUDNN,
    DT_ATTENTION_MMA,
    DT_ATTENTION_WGMMA
} dt_attention_wish;

/* DT_ERR_USAGE for an unknown one. */
dt_status dt_attention_wish_read(dt_attention_wish *out, dt_error *err);

static inline bool dt_attention_asks_cudnn(dt_attention_wish wish)
{
    return wish == DT_ATTENTION_FASTEST || wish == DT_ATTENTION_CUDNN;
}

#define DT_ATTENTION_NAME_MAX 96 /* bytes, with the end */

typedef struct dt_attention_question {
    bool forced; /* the rival, however long it takes */
    dt_tuned *tuned;
    const char *machine;     /* card, driver, cuBLASLt: how keys begin */
    const char *kind;        /* what is asked, in keys: the rival with its version, and the pass */
    const char *name;        /* of the shape, in keys and in the log */
    const char *own, *rival; /* in the log */
    void *context;           /* of the functions */
    /* Makes the rival's kernel. */
    dt_status (*build)(void *context, dt_error *err);
    /* Milliseconds of both; an error where the rival's results are not ours, or not twice the same. */
    dt_status (*measure)(void *context, float *own_ms, float *rival_ms, dt_error *err);
} dt_attention_question;

/* Whether it is the rival, whose kernel is built then. */
bool dt_attention_choose(const dt_attention_question *question);

#ifdef __cplusplus
}
#endif
#endif
