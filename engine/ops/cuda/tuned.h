/* tuned: stores, in a file, the fastest algorithm for each product and the attention kernel for each shape.
 *
 * Purpose    the search costs time at every start, and a search with another outcome gives other bits: all ranks
 *            of a node, and its later runs, use what the first one found
 * File       $XDG_CACHE_HOME/dtrun/cublaslt-algorithms; one line per entry:
 *              key <tab> algorithm in hex <tab> FNV-1a of both in 16 hex digits
 *            The key has no tabs: GPU, driver, cuBLASLt, then the product as product.cu writes it, or the attention
 *            kernel and shape as attention_choice.c does. A line of another form is ignored, with one line in the
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

#ifdef __cplusplus
}
#endif
#endif
