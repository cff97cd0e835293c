/* fingerprint: identifies the data that a sampler position refers to, so that a resumed run continues in
 * the same data.
 *
 *   {"files": [{"kind": "char", "bytes": 120000, "xxh3_128": "85b9...", "digested_bytes": 120000}],
 *    "validation": [],          files in the same form
 *    "split": 0.1,              null if there are validation files
 *    "sequence_tokens": 256, "tail": "wrap", "seed": 1337,
 *    "pack": "true",            only with data.pack
 *    "mixture": "0.7 of 2 files, 0.3 of 1 file",    only with data.mixture
 *    "max_tokens": 4096, "too_long": "drop",    only for sentence pairs
 *    "longer": "cut", "loss": "token"}          only for conversations: too_long and loss
 *
 * Files are compared by content and order, not by name or place. The tokenizer is the checkpoint's.
 * Digest     of whole files, if a list of files has at most DT_FINGERPRINT_BYTES. Otherwise each
 *            file has an equal share of that (at least 128 KiB), and of a larger file this many
 *            bytes are digested, in windows of 64 KiB spread evenly from its first byte to its
 *            last: a change between the windows that keeps the file's size goes unnoticed
 * Validation files may differ, since no position refers to them. The best loss is then reset
 */
#ifndef DT_ENGINE_DATA_FINGERPRINT_H
#define DT_ENGINE_DATA_FINGERPRINT_H

#include "base/error.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_FINGERPRINT_BYTES ((int64_t)256 << 20)

/* New reference. DT_ERR_RECIPE for unreadable files, as from dt_dataset_open. */
dt_status dt_fingerprint_make(json_t **out, const dt_recipe *recipe, dt_error *err);

/* Fingerprint of any files, in the form of `files` above: [{"bytes": 120000, "xxh3_128": "85b9...",
 * ...}]. New reference. */
dt_status dt_fingerprint_files(json_t **out, const dt_string_list *paths, dt_error *err);

/* Whether a position refers to different data. Appends the differences to `words`, which can be
 * NULL: "seed was 1337, is 2; file 1 had 120 bytes, has 150". */
bool dt_fingerprint_differs(dt_strbuf *words, const json_t *was, const json_t *is);
/* Whether validation losses are on different text. */
bool dt_fingerprint_validation_differs(const json_t *was, const json_t *is);

#ifdef __cplusplus
}
#endif
#endif
