/* tuned: which algorithm was the fastest for a product, and whose attention, kept from run to run
 * in a file.
 *
 * Purpose    the search costs time at every start, and a search that ends otherwise gives other
 *            bits: all ranks of a node, and its later runs, take what the first one found
 * File       $XDG_CACHE_HOME/dtrun/cublaslt-algorithms; a line each:
 *              key <tab> algorithm in hex <tab> FNV-1a of both in 16 hex digits
 *            key: card, driver, cuBLASLt, then the product, as product.cu writes it, or cuDNN and
 *            the shape, as attention_choice.c does; no tabs. A line that is not of this form is
 *            ignored, with one line in the log for all of them
 * Writing    under a lock, after reading it again, as a whole, by a rename. Whoever comes second
 *            with a key takes what is there
 * Errors     none that stop a run: without the file every start searches anew, and says so once
 * Threads    one at a time; other processes at any time
 */
#ifndef DT_ENGINE_OPS_CUDA_TUNED_H
#define DT_ENGINE_OPS_CUDA_TUNED_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_TUNED_KEY_MAX  320 /* bytes, with the end */
#define DT_TUNED_ALGO_MAX 64

typedef struct dt_tuned dt_tuned;

/* path: of the file; NULL: that of this user. Never fails but for memory: then NULL. */
dt_tuned *dt_tuned_open(const char *path);
void dt_tuned_close(dt_tuned *tuned); /* accepts NULL */

/* Whether there is one of `bytes` bytes; it is then in algo. */
bool dt_tuned_find(dt_tuned *tuned, const char *key, void *algo, size_t bytes);
/* Keeps it, or gives in its place what another process has kept since. */
void dt_tuned_keep(dt_tuned *tuned, const char *key, void *algo, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
