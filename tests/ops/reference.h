/* reference: every op in double precision, written like its formula.
 *
 * Names, shapes and formulas as in engine/ops/ops.h; parameter gradients accumulate there and
 * here. Backward passes recompute the values that the ops keep (mean, rstd, lse).
 */
#ifndef DT_TESTS_OPS_REFERENCE_H
#define DT_TESTS_OPS_REFERENCE_H

#include <stdint.h>

#include "engine/optim/optimizer.h"

void ref_embedding_forward(double *out, const int32_t *tokens, const double *wte, const double *wpe,
                           double scale, int64_t n, int64_t t, int64_t c);
/* dwpe may be NULL. */
void ref_embedding_backward(double *dwte, double *dwpe, const double *dout, const int32_t *tokens,
                            double scale, int64_t n, int64_t t, int64_t c);

void ref_layernorm_forward(double *y, double *mean, double *rstd, const double *x, const double *w,
                           const double *b, int64_t n, int64_t c, double eps);
void ref_layernorm_backward(double *dx, double *dw, double *db, const double *dy, const double *x,
                            const double *w, int64_t n, int64_t c, double eps);

void ref_matmul_forward(double *y, const double *x, const double *w, const double *bias, int64_t n,
                        int64_t i, int64_t o);
void ref_matmul_backward(double *dx, double *dw, double *dbias, const double *dy, const double *x,
                         const double *w, int64_t n, int64_t i, int64_t o);

typedef struct ref_attention {
    int64_t b, queries, keys, heads, groups, d;
    bool causal;
    const int32_t *starts;  /* (B,K): the first key that each position sees, if causal; or NULL */
    const double *mask;     /* (B,H,Q,K): factors of the probabilities; or NULL for no dropout */
    const int32_t *lengths; /* (B): keys that a sequence's queries see, if not causal; or NULL */
    int64_t window;         /* of these keys only the last; 0: all */
    double scale, softcap;  /* of scores; 0: 1/sqrt(D), and none */
} ref_attention;

/* q (B,Q,H,D), k and v (B,K,G,D): rows of heads that are this many numbers apart. */
typedef struct ref_qkv {
    double *q, *k, *v;
    int64_t q_row, kv_row;
} ref_qkv;

/* Packed in one tensor (B,T,3C): as many queries as keys, as many groups as heads. */
ref_qkv ref_packed(double *qkv, const ref_attention *a);
ref_attention ref_self_attention(int64_t b, int64_t t, int64_t heads, int64_t d, bool causal,
                                 const double *mask);

void ref_attention_forward(double *out, double *lse, const ref_qkv *x, const ref_attention *a);
/* dx OVERWRITTEN */
void ref_attention_backward(const ref_qkv *dx, const double *dout, const ref_qkv *x,
                            const ref_attention *a);

double ref_gelu(double x);
double ref_gelu_slope(double x);
double ref_gelu_tanh(double x);
double ref_gelu_tanh_slope(double x);

void ref_cross_entropy(double *losses, double *dlogits, const double *logits,
                       const int32_t *targets, int64_t n, int64_t padded, int64_t vocab,
                       double scale, double smoothing);

/* m, v: NULL if the optimizer has none. */
void ref_optimizer(double *param, double *m, double *v, const double *grad, int64_t n,
                   const dt_optimizer_args *args);

#endif
