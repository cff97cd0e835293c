/* fingerprint: what a position in the data means, so that a run continues in the data it began in.
 *
 *   {"files": [{"kind": "char", "bytes": 120000, "xxh3_128": "85b9...", "digested_bytes": 120000}],
 *    "validation": [],          files of the same form
 *    "split": 0.1,              null beside validation files
 *    "sequence_tokens": 256, "tail": "wrap", "seed": 1337,
 *    "pack": "true",            with data.pack alone
 *    "max_tokens": 4096, "too_long": "drop"}    of sentence pairs alone
 *
 * By content: names and places of files do not count, their order does. The tokenizer is the
 * checkpoint's own.
 * Digest     of the whole file where a list of files has DT_FINGERPRINT_BYTES at most. Else each
 *            file has an equal share of as many (128 KiB at least), and of one that is larger so
 *            many bytes are digested, in windows of 64 KiB spread evenly from its first byte to its
 *            last: what is changed between them, in a file of the same size, is not noticed
 * Validation files may be others: no position is in them. The best loss then begins anew
 */
#ifndef DT_ENGINE_DATA_FINGERPRINT_H
#define DT_ENGINE_DATA_FINGERPRINT_H

#include "base/error.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "recipes/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_FINGERPRINT_BYTES ((int64_t)256 << 20)

/* New reference. DT_ERR_RECIPE as dt_dataset_open has it for files that cannot be read. */
dt_status dt_fingerprint_make(json_t **out, const dt_recipe *recipe, dt_error *err);

/* Any files: [{"bytes": 120000, "xxh3_128": "85b9...", ...}], as `files`. New reference. */
dt_status dt_fingerprint_files(json_t **out, const dt_string_list *paths, dt_error *err);

/* Whether a position means something else, and what: "seed was 1337, is 2; file 1 had 120 bytes,
 * has 150". `words` may be NULL. */
bool dt_fingerprint_differs(dt_strbuf *words, const json_t *was, const json_t *is);
/* Whether a validation loss is of other text. */
bool dt_fingerprint_validation_differs(const json_t *was, const json_t *is);

#ifdef __cplusplus
}
#endif
#endif
