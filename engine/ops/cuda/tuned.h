/* tuned: stores, in a file, what is fastest for each shape, and chooses between two attention kernels by
 * it.
 *
 * Purpose    the search costs time at every start, and a search with another outcome gives other bits: all ranks
 *            of a node, and its later runs, use what the first one found
 * File       $XDG_CACHE_HOME/dtrun/cublaslt-algorithms; one line per entry:
 *              key <tab> algorithm in hex <tab> FNV-1a of both in 16 hex digits
 *            The key has no tabs: GPU, driver, cuBLASLt, then the product as product.cu writes it, or the attention
 *            kernel and shape as tuned.c does. A line of another form is ignored, with one line in the
 *            log for all of them
 * Writing    under a lock: the file is read again and replaced as a whole by a rename. If another process has
 *            already stored the key, its value is used
 * Errors     none that stop a run: without the file, every start searches again, and logs this once
 * Threads    one at a time; other processes at any time
 */
#ifndef DT_ENGINE_OPS_CUDA_TUNED_H
#define DT_ENGINE_OPS_CUDA_TUNED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_TUNED_KEY_MAX  320 /* bytes, including the terminating NUL */
#define DT_TUNED_ALGO_MAX 64

typedef struct dt_tuned dt_tuned;

/* path: of the file; NULL: the default file of this user. NULL only if memory is exhausted. */
dt_tuned *dt_tuned_open(const char *path);
void dt_tuned_close(dt_tuned *tuned); /* accepts NULL */

/* Returns whether there is an entry of `bytes` bytes for the key; copies it to algo. */
bool dt_tuned_find(dt_tuned *tuned, const char *key, void *algo, size_t bytes);
/* Stores an entry. If another process has stored one since, that one is copied to algo instead. */
void dt_tuned_keep(dt_tuned *tuned, const char *key, void *algo, size_t bytes);

/* attention_choice: chooses between two attention kernels for a shape: the default one and a rival. The rival is
 * cuDNN's kernel instead of the built-in one, or the built-in kernel for sm_90a instead of that for sm_80.
 *
 * Rule       both are measured when a shape first occurs; the rival must be 2 % faster. The choice is stored with
 *            the algorithms of the products, because the two kernels give different bits: the first rank
 *            of a node that measures decides for all ranks of the node, now and in later runs. A rival that fails
 *            is not used; if it fails for lack of memory, the choice is not stored
 * Switch     DTRUN_ATTENTION in the environment of the ranks: "own" never uses cuDNN, "cudnn" uses it wherever it
 *            works, even if it is slower; "mma" uses only the built-in kernel for sm_80, "wgmma" the built-in one
 *            for sm_90a wherever it supports the call, both without cuDNN and without measuring. With these, no
 *            choice is stored. Unset, or "fastest": the rule above
 * Log        one line per shape, with the kernel and the reason
 */

typedef enum dt_attention_wish {
    DT_ATTENTION_FASTEST,
    DT_ATTENTION_OWN,
    DT_ATTENTION_CUDNN,
    DT_ATTENTION_MMA,
    DT_ATTENTION_WGMMA
} dt_attention_wish;

/* Reads DTRUN_ATTENTION. DT_ERR_USAGE for an unknown value. */
dt_status dt_attention_wish_read(dt_attention_wish *out, dt_error *err);

static inline bool dt_attention_asks_cudnn(dt_attention_wish wish)
{
    return wish == DT_ATTENTION_FASTEST || wish == DT_ATTENTION_CUDNN;
}

#define DT_ATTENTION_NAME_MAX 96 /* bytes, including the terminating NUL */

typedef struct dt_attention_question {
    bool forced; /* use the rival even if it is slower */
    dt_tuned *tuned;
    const char *machine;     /* start of the keys: GPU, driver, cuBLASLt */
    const char *kind;        /* part of the keys: the rival with its version, and the pass */
    const char *name;        /* of the shape, in the keys and in the log */
    const char *own, *rival; /* names for the log */
    void *context;           /* passed to build and measure */
    /* Builds the rival's kernel. */
    dt_status (*build)(void *context, dt_error *err);
    /* Measures both, in milliseconds; fails if the rival's results differ from those of the default
     * kernel, or from one run to the next. */
    dt_status (*measure)(void *context, float *own_ms, float *rival_ms, dt_error *err);
} dt_attention_question;

/* Returns whether to use the rival, whose kernel is then built. */
bool dt_attention_choose(const dt_attention_question *question);

#ifdef __cplusplus
}
#endif

#endif
