/* ops: declares everything that a backend computes, one function pointer per op and direction, and its
 * arguments.
 *
 * B sequences, T tokens per sequence, C width, H heads, D = C/H, V vocabulary, Vp padded
 * vocabulary, N = B*T rows, I inputs and O outputs of a product. d* are gradients.
 *
 * Order      device, outputs, inputs, numbers, err
 * Types      "act" is F32, BF16 or F16, the same for all activations and weights of a call.
 *            Arithmetic and sums are in fp32 for every type. Statistics (mean, rstd, lse, losses) and
 *            parameter gradients are always F32.
 * Rounding   once, to nearest even, when a result is stored. Overflow of F16 gives infinity, not the
 *            largest number, since the loss scale depends on it; subnormal numbers and NaN are kept.
 * Writes     activations and their gradients are OVERWRITTEN, parameter gradients ACCUMULATE
 *            (+=), unless the op says otherwise
 * Aliasing   none, unless the op says otherwise
 * Determinism  same inputs, same thread count: same bits. No atomic float adds.
 * Steps      an op reads values that change from step to step (a key's clock, the optimizer's factors) from
 *            device memory when it runs, so that it can be recorded once and replayed (engine/device/queue.h).
 *            On the CPU it runs when it is called
 * Dropout    element i is kept if dt_philox_uniform(word i % 4 of block i / 4) >= (float)p, and multiplied by
 *            (float)(1/(1-p)): the mask is the same on every backend, for any threads and tiles
 * Errors     DT_ERR_UNSUPPORTED for a type or shape that the backend does not support; the
 *            outputs are then unspecified. Shapes that contradict each other are a bug.
 *
 * list.h names every op once and explains how to add one; ops/cpu/table.c and ops/cuda/table.cu fill the struct
 * from it. Each op has one file, with the same stem in both folders. tests/ops tests every entry.
 */
#ifndef DT_ENGINE_OPS_OPS_H
#define DT_ENGINE_OPS_OPS_H

#include <stdint.h>

#include "base/error.h"
#include "engine/device/device.h"
#include "engine/ops/optimizer_rules.h"
#include "engine/philox.h"
#include "engine/tensor.h"
#include "recipes/architecture/tokens.h"
#include "recipes/fields/activation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* heads: describes strided views of attention heads inside wider rows.
 *
 *   packed          one tensor (B,T,3C), three views with a row stride of 3C
 *   grouped heads   k and v have fewer heads than q: head h of q uses head h / (H/G) of k and v
 *   cross attention q is of one sequence, k and v of another: their T differ
 *   KV cache        q is the last rows of a sequence, k and v all cached rows
 *
 * Element  d of head h of row t of sequence b is data[b*sequence_stride + t*row_stride + h*D + d]
 * Owns     nothing
 */

typedef struct dt_heads {
    void *data;
    dt_dtype dtype;
    int64_t batch, rows, heads, width;   /* B T H D */
    int64_t row_stride, sequence_stride; /* elements */
} dt_heads;

/* The inputs of one attention call, or their gradients. */
typedef struct dt_qkv {
    dt_heads q; /* (B,Q,H,D) */
    dt_heads k; /* (B,K,G,D), H a multiple of G */
    dt_heads v; /* (B,K,G,D) */
} dt_qkv;

/* Returns a view of `heads` heads of `width` columns each, starting at column `first` of x (B,T,columns). */
static inline dt_heads dt_heads_of(const dt_tensor *x, int64_t first, int64_t heads, int64_t width)
{
    int64_t columns = x->dim[2];
    dt_heads h = {(char *)x->data + (size_t)first * dt_dtype_bytes(x->dtype),
                  x->dtype,
                  x->dim[0],
                  x->dim[1],
                  heads,
                  width,
                  columns,
                  x->dim[1] * columns};

    return h;
}

/* Returns a view of the last `rows` rows of every sequence. */
static inline dt_heads dt_heads_last(dt_heads h, int64_t rows)
{
    h.data = (char *)h.data + (size_t)((h.rows - rows) * h.row_stride) * dt_dtype_bytes(h.dtype);
    h.rows = rows;
    return h;
}

/* Returns views of q, k and v, each with `heads` heads, in qkv (B,T,3C). */
static inline dt_qkv dt_qkv_packed(const dt_tensor *qkv, int64_t heads)
{
    int64_t c = qkv->dim[2] / 3;
    dt_qkv views = {dt_heads_of(qkv, 0, heads, c / heads), dt_heads_of(qkv, c, heads, c / heads),
                    dt_heads_of(qkv, 2 * c, heads, c / heads)};

    return views;
}

/* vocab_part: describes the rows of a vocabulary that a rank has of a divided embedding or head. */

typedef struct dt_vocab_part {
    int64_t first; /* first token of the part */
    int64_t count; /* tokens of the part; rows after them are padding. Can be 0 */
    int64_t all;   /* tokens of the whole vocabulary */
} dt_vocab_part;

/* Which of the K keys query i of Q sees. The position of query i is i + K - Q. */
typedef enum dt_mask_kind {
    DT_MASK_FULL,     /* all keys */
    DT_MASK_CAUSAL,   /* keys up to its position */
    DT_MASK_SEGMENTS, /* keys from the start of the segment at its position up to its position */
    DT_MASK_LENGTHS,  /* the first key_lengths[b] keys of its sequence b */
} dt_mask_kind;

typedef struct dt_attention_args {
    dt_mask_kind mask;        /* CAUSAL and SEGMENTS require Q <= K */
    dt_tensor segment_starts; /* I32 (B,K): the first position of each position's segment; at most
                               * the position, and not decreasing. SEGMENTS only */
    dt_tensor key_lengths;    /* I32 (B), 1 to K each: LENGTHS only */
    int64_t
        window; /* above 0: of the keys that the mask shows, only the last `window` up to the query's position; with
                     * LENGTHS this is the sequence's last key. Not with FULL */
    double scale;             /* factor of the scores; 0: 1/sqrt(D) */
    double softcap;           /* above 0: scores are softcap tanh(scaled score / softcap) */
    double p;                 /* probability of dropping an attention weight */
    const dt_philox_key *key; /* unused if p is 0 */
    /* the heads are a part of `heads` heads, from `first_head` on, in the index of the dropout mask;
     * heads 0: they are all */
    int64_t first_head, heads;
} dt_attention_args;

typedef struct dt_ops {
    /* lengths[b] = 1 + the last position of row b that is not `pad`; 1 if all are `pad`.
     * lengths I32 (B)  tokens I32 (B,T) */
    dt_status (*row_lengths)(dt_device *, dt_tensor *lengths, const dt_tensor *tokens, int32_t pad,
                             dt_error *err);

    /* out[b,t] = scale*wte[tokens[b,t]] + wpe[t].   out act or F32 (B,T,C)  tokens I32 (B,T)
     * wte act (Vp,C)  wpe act (>=T,C), optional. part: wte has only these rows of the vocabulary, and the
     * other tokens' rows are 0; NULL: wte is whole */
    dt_status (*embedding_forward)(dt_device *, dt_tensor *out, const dt_tensor *tokens,
                                   const dt_tensor *wte, const dt_tensor *wpe, double scale,
                                   const dt_vocab_part *part, dt_error *err);
    /* dwte[token] += scale*dout, dwpe[t] += sum over b.   dwte F32 (Vp,C)
     * dwpe F32 (>=T,C), each optional. part: of dwte */
    dt_status (*embedding_backward)(dt_device *, dt_tensor *dwte, dt_tensor *dwpe,
                                    const dt_tensor *dout, const dt_tensor *tokens, double scale,
                                    const dt_vocab_part *part, dt_error *err);

    /* y = (x - mean) * rstd * w + b, rstd = 1/sqrt(var + eps), var biased (Ba et al. 2016).
     * x,y act (N,C)  mean,rstd F32 (N)  w,b act (C) */
    dt_status (*layernorm_forward)(dt_device *, dt_tensor *y, dt_tensor *mean, dt_tensor *rstd,
                                   const dt_tensor *x, const dt_tensor *w, const dt_tensor *b,
                                   double eps, dt_error *err);
    /* dx += (it already holds the residual stream's gradient); dw, db F32 (C) +=, each optional */
    dt_status (*layernorm_backward)(dt_device *, dt_tensor *dx, dt_tensor *dw, dt_tensor *db,
                                    const dt_tensor *dy, const dt_tensor *x, const dt_tensor *mean,
                                    const dt_tensor *rstd, const dt_tensor *w, dt_error *err);

    /* y = x * rstd * (shift + w), rstd = 1/sqrt(mean(x^2) + eps) (Zhang and Sennrich 2019).
     * x,y act (N,C)  rstd F32 (N)  w act (C)  shift 0 or 1 */
    dt_status (*rmsnorm_forward)(dt_device *, dt_tensor *y, dt_tensor *rstd, const dt_tensor *x,
                                 const dt_tensor *w, double shift, double eps, dt_error *err);
    /* dx +=, as in layernorm_backward; dw F32 (C) +=, optional */
    dt_status (*rmsnorm_backward)(dt_device *, dt_tensor *dx, dt_tensor *dw, const dt_tensor *dy,
                                  const dt_tensor *x, const dt_tensor *rstd, const dt_tensor *w,
                                  double shift, dt_error *err);

    /* An rmsnorm over all heads of a row, which may be on several ranks: `sums` and `products` are then added up
     * between these ops. W elements on all ranks, x,y act heads (B,T,H,D), w act (H*D), sums and products F32 (B*T).
     * sums[n] = sum of a b (shift + w) over the row's heads; w no data: sum of a b */
    dt_status (*heads_sum)(dt_device *, dt_tensor *sums, const dt_heads *a, const dt_heads *b,
                           const dt_tensor *w, double shift, dt_error *err);
    /* y = x rstd (shift + w), rstd = 1/sqrt(sums/W + eps), sums = heads_sum(x, x). y may be x */
    dt_status (*heads_norm_forward)(dt_device *, const dt_heads *y, const dt_heads *x,
                                    const dt_tensor *sums, const dt_tensor *w, double shift,
                                    int64_t width, double eps, dt_error *err);
    /* dx = rstd (dy (shift + w) - x rstd^2 products/W), products = heads_sum(dy, x, w), OVERWRITTEN, and may be dy;
     * dw F32 (H*D) +=, optional */
    dt_status (*heads_norm_backward)(dt_device *, const dt_heads *dx, dt_tensor *dw,
                                     const dt_heads *dy, const dt_heads *x, const dt_tensor *sums,
                                     const dt_tensor *products, const dt_tensor *w, double shift,
                                     int64_t width, double eps, dt_error *err);

    /* y = x w^T + bias.   x act (N,I)  w act (O,I)  bias act (O), optional
     * y act or F32 (N,O) */
    dt_status (*matmul_forward)(dt_device *, dt_tensor *y, const dt_tensor *x, const dt_tensor *w,
                                const dt_tensor *bias, dt_error *err);
    /* dx = dy w.   dx act (N,I) */
    dt_status (*matmul_backward_input)(dt_device *, dt_tensor *dx, const dt_tensor *dy,
                                       const dt_tensor *w, dt_error *err);
    /* dw += dy^T x, dbias += column sums of dy.   dw F32 (O,I)  dbias F32 (O), each optional */
    dt_status (*matmul_backward_weight)(dt_device *, dt_tensor *dw, dt_tensor *dbias,
                                        const dt_tensor *dy, const dt_tensor *x, dt_error *err);

    /* out = dropout(softmax(scores(q k^T)), p) v per head, scores as in dt_attention_args.   out act (B,Q,H*D)
     * lse F32 (B,H,Q): log of the sum of exponentials over all keys that the query sees, dropped or not; kept
     * for backward. The index in the dropout mask is ((b*H + h)*Q + query)*K + key, H and h counting all heads
     * (dt_attention_args.heads) */
    dt_status (*attention_forward)(dt_device *, dt_tensor *out, dt_tensor *lse, const dt_qkv *x,
                                   const dt_attention_args *args, dt_error *err);
    /* Recomputes probabilities from lse (Dao et al. 2022) and the dropout mask from key; the row sums of dout * out
     * are also right with dropout. dx: gradients of q, k and v, OVERWRITTEN; those of k and v are summed over
     * the heads of q that share them, and 0 for keys that no query sees */
    dt_status (*attention_backward)(dt_device *, const dt_qkv *dx, const dt_tensor *dout,
                                    const dt_qkv *x, const dt_tensor *out, const dt_tensor *lse,
                                    const dt_attention_args *args, dt_error *err);

    /* Rotary positions (Su et al. 2021): rotates elements i and j = i + R/2 of a head in row t,
     *   y_i = z_i cos(t,i) - z_j sin(t,i)    y_j = z_j cos(t,i) + z_i sin(t,i)
     * where z is x, or with w the rmsnorm of x's heads (which also writes rstd), and y is z from element R on.
     * x,y act heads (B,T,H,D); y may be x.   angles F32 (>=T,R), R even, at most D: each row R/2 cosines, then
     * R/2 sines.   w act (D) and rstd F32 (B*T*H), both optional; shift as in rmsnorm_forward */
    dt_status (*rotary_forward)(dt_device *, const dt_heads *y, dt_tensor *rstd, const dt_heads *x,
                                const dt_tensor *w, double shift, const dt_tensor *angles,
                                double eps, dt_error *err);
    /* dx OVERWRITTEN, and may be dy; dw F32 (D) +=, optional. Without w, dw and rstd are also left out, and x is not read. */
    dt_status (*rotary_backward)(dt_device *, const dt_heads *dx, dt_tensor *dw, const dt_heads *dy,
                                 const dt_heads *x, const dt_tensor *rstd, const dt_tensor *w,
                                 double shift, const dt_tensor *angles, dt_error *err);

    /* y = f(a) b, a and b the halves of x's rows, f by the kind (Shazeer 2020).   x act (N,2F)  y act (N,F) */
    dt_status (*gate_forward)(dt_device *, dt_tensor *y, const dt_tensor *x, dt_gate_kind kind,
                              dt_error *err);
    /* dx act (N,2F), which may be x */
    dt_status (*gate_backward)(dt_device *, dt_tensor *dx, const dt_tensor *dy, const dt_tensor *x,
                               dt_gate_kind kind, dt_error *err);

    /* y = cap tanh(factor x / cap); cap 0: y = factor x.   x,y act or F32, of any shape; y may be x */
    dt_status (*softcap_forward)(dt_device *, dt_tensor *y, const dt_tensor *x, double factor,
                                 double cap, dt_error *err);
    /* dx = dy factor (1 - (y/cap)^2), y of softcap_forward; cap 0: dx = factor dy, and y is not read. dx may be dy */
    dt_status (*softcap_backward)(dt_device *, dt_tensor *dx, const dt_tensor *dy,
                                  const dt_tensor *y, double factor, double cap, dt_error *err);

    /* GELU       y = 0.5 x (1 + erf(x/sqrt(2)))
     * GELU_TANH  y = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
     * (Hendrycks and Gimpel 2016)
     * RELU       y = max(x, 0), with slope 0 at 0      TANH  y = tanh(x)
     * x,y act, of any shape */
    dt_status (*activation_forward)(dt_device *, dt_tensor *y, const dt_tensor *x,
                                    dt_activation_kind kind, dt_error *err);
    /* dx may be dy */
    dt_status (*activation_backward)(dt_device *, dt_tensor *dx, const dt_tensor *dy,
                                     const dt_tensor *x, dt_activation_kind kind, dt_error *err);

    /* Keeps an element with probability 1-p and scales it by 1/(1-p). The choice is Philox of the key and the
     * element's index, so that backward recomputes it. y may be x. p = 0 copies. */
    dt_status (*dropout_forward)(dt_device *, dt_tensor *y, const dt_tensor *x, double p,
                                 const dt_philox_key *key, dt_error *err);
    dt_status (*dropout_backward)(dt_device *, dt_tensor *dx, const dt_tensor *dy, double p,
                                  const dt_philox_key *key, dt_error *err);

    /* y = a + b.   y may be a or b */
    dt_status (*residual_forward)(dt_device *, dt_tensor *y, const dt_tensor *a, const dt_tensor *b,
                                  dt_error *err);

    /* losses[n] = log(sum_v exp(logits[n,v])) - logits[n,target[n]] over the first V columns;
     * a target < 0 is ignored (loss 0, gradient 0). Loss and gradient are multiplied by weights[n]; NULL: by 1.
     * losses F32 (N)  logits act or F32 (N,Vp)  targets I32 (N)  weights F32 (N) */
    dt_status (*cross_entropy_forward)(dt_device *, dt_tensor *losses, const dt_tensor *logits,
                                       const dt_tensor *targets, const dt_tensor *weights,
                                       int64_t vocab, dt_error *err);
    /* With smoothing e (Szegedy et al. 2016) the loss is (1-e) times the loss above plus e/V times its sum over all V
     * targets: log(sum_v exp) - (1-e) logits[n,target[n]] - e/V sum_v logits[n,v]. Also logits :=
     * (softmax - (1-e) onehot - e/V) * scale IN PLACE, padded columns 0. scale, in device memory:
     * 1 / sum of the weights of the targets of the whole step, over ranks and micro-steps. */
    dt_status (*cross_entropy_backward)(dt_device *, dt_tensor *losses, dt_tensor *logits,
                                        const dt_tensor *targets, const dt_tensor *weights,
                                        int64_t vocab, const double *scale, double smoothing,
                                        dt_error *err);

    /* Cross entropy over a vocabulary whose columns are divided among ranks; logits (N,Vp) are those of `part`.
     * Writes own F32 (DT_VOCAB_NUMBERS,N): a row's largest logit, the sum of exp(logit - largest), the target's logit;
     * -inf, 0 and 0 where the part has none; and with smoothing the sum of the part's logits divided by V, else 0. A
     * target < 0: unspecified numbers that are finite or -inf. */
    dt_status (*cross_entropy_part)(dt_device *, dt_tensor *own, const dt_tensor *logits,
                                    const dt_tensor *targets, const dt_vocab_part *part,
                                    double smoothing, dt_error *err);
    /* The losses of the whole vocabulary, from all F32 (ranks,DT_VOCAB_NUMBERS,N), what cross_entropy_part wrote on
     * each rank with the same smoothing. With `scale` also logits := their gradient IN PLACE, padded columns 0, as in
     * cross_entropy_backward; scale NULL: only the losses. */
    dt_status (*cross_entropy_join)(dt_device *, dt_tensor *losses, dt_tensor *logits,
                                    const dt_tensor *all, const dt_tensor *targets,
                                    const dt_tensor *weights, const dt_vocab_part *part,
                                    const double *scale, double smoothing, dt_error *err);

    /* losses[n] = sum_o (y[n,o] - targets[n,o])^2; a target that is NaN is ignored (loss 0, gradient 0).
     * losses F32 (N)  y act or F32 (N,O)  targets F32 (N,O) */
    dt_status (*squared_error_forward)(dt_device *, dt_tensor *losses, const dt_tensor *y,
                                       const dt_tensor *targets, dt_error *err);
    /* Also y := 2 (y - targets) * scale IN PLACE. scale, in device memory: 1 / targets of the whole step that are
     * not NaN. */
    dt_status (*squared_error_backward)(dt_device *, dt_tensor *losses, dt_tensor *y,
                                        const dt_tensor *targets, const double *scale,
                                        dt_error *err);

    /* Updates param and the rule's states F32 or, with ADAM, BF16 (n) in place from grad F32 (n), which may be param.
     * copy act (n), optional, becomes param in the compute type. The states are 0 before step 1.
     * factors are in device memory. optimizer_rules.h defines the step of one element, for all
     * backends. */
    dt_status (*optimizer_step)(dt_device *, dt_optimizer_rule rule, dt_tensor *param,
                                dt_tensor *copy, dt_tensor *states, const dt_tensor *grad,
                                const dt_optimizer_factors *factors, dt_error *err);

    /* out = x / max(|x|, eps), |x| the L2 norm.   out act, x F32, of any shape */
    dt_status (*normalize)(dt_device *, dt_tensor *out, const dt_tensor *x, double eps,
                           dt_error *err);
    /* y = a*x + b*y.   x,y act, of any shape */
    dt_status (*blend)(dt_device *, dt_tensor *y, const dt_tensor *x, double a, double b,
                       dt_error *err);

    /* *out = sum of squares, in a fixed order; not finite if an x is not finite. x F32 (n) */
    dt_status (*sum_squares)(dt_device *, double *out, const dt_tensor *x, dt_error *err);
    /* *out = sum of x, in a fixed order. x F32 (n) */
    dt_status (*sum)(dt_device *, double *out, const dt_tensor *x, dt_error *err);
    /* out := x in out's type */
    dt_status (*cast)(dt_device *, dt_tensor *out, const dt_tensor *x, dt_error *err);
    /* x := 0, any type */
    dt_status (*zero)(dt_device *, dt_tensor *x, dt_error *err);

    /* --- fused ops; NULL if the backend has no better code than the single ops */

    /* matmul_forward into pre, then activation_forward (GELU_TANH) of pre into y; the activation can use pre
     * before or after rounding. y,pre act (N,O) */
    dt_status (*matmul_gelu_forward)(dt_device *, dt_tensor *y, dt_tensor *pre, const dt_tensor *x,
                                     const dt_tensor *w, const dt_tensor *bias, dt_error *err);
    /* matmul_backward_input, then activation_backward (GELU_TANH) of its result, before or after rounding.
     * dpre,pre act (N,I), dy act (N,O) */
    dt_status (*matmul_gelu_backward)(dt_device *, dt_tensor *dpre, const dt_tensor *dy,
                                      const dt_tensor *w, const dt_tensor *pre, dt_error *err);
    /* y = a + x w^T + bias, as matmul_forward and residual_forward, before or after the product is rounded.
     * y,a act (N,O), y not a */
    dt_status (*matmul_residual_forward)(dt_device *, dt_tensor *y, const dt_tensor *a,
                                         const dt_tensor *x, const dt_tensor *w,
                                         const dt_tensor *bias, dt_error *err);
    /* layernorm_backward; also dbias += column sums of dx as it is before: the gradient of the bias of a layer whose
     * output is added to the residual stream. dbias F32 (C) */
    dt_status (*layernorm_backward_bias)(dt_device *, dt_tensor *dx, dt_tensor *dw, dt_tensor *db,
                                         dt_tensor *dbias, const dt_tensor *dy, const dt_tensor *x,
                                         const dt_tensor *mean, const dt_tensor *rstd,
                                         const dt_tensor *w, dt_error *err);
    /* attention_backward; also dbias += column sums of the gradients of q, k and v, before or after they are rounded.
     * dbias F32 ((H+2G)*D) */
    dt_status (*attention_backward_bias)(dt_device *, const dt_qkv *dx, dt_tensor *dbias,
                                         const dt_tensor *dout, const dt_qkv *x,
                                         const dt_tensor *out, const dt_tensor *lse,
                                         const dt_attention_args *args, dt_error *err);
    /* matmul_backward_weight, but dw is OVERWRITTEN: neither zeroed before nor read. dbias += */
    dt_status (*matmul_first_weight)(dt_device *, dt_tensor *dw, dt_tensor *dbias,
                                     const dt_tensor *dy, const dt_tensor *x, dt_error *err);
    /* out[i] = sum_squares of x[i], with one synchronization of the device. */
    dt_status (*sum_squares_each)(dt_device *, double *out, const dt_tensor *x, int count,
                                  dt_error *err);
    /* x[i] := 0, all F32 and not overlapping, in few launches. */
    dt_status (*zero_each)(dt_device *, dt_tensor *x, int count, dt_error *err);
} dt_ops;

extern const dt_ops dt_ops_cpu;

#ifdef __cplusplus
}
#endif

#endif
