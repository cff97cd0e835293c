/* text: UTF-8 in a mapped file → code points → tokens, in two passes, so that a text never stands
 * in memory as 32-bit numbers.
 *
 * A NUL is refused: no text has one, and files in UTF-16 and binaries do.
 * Errors  DT_ERR_RECIPE naming the file and the byte
 */
#ifndef DT_ENGINE_TEXT_H
#define DT_ENGINE_TEXT_H

#include "engine/data/stream.h"
#include "engine/data/tokenizer_int.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counts code points and adds them to the set. */
dt_status dt_text_scan(dt_char_set *set, int64_t *count, const char *path, const dt_mapping *text,
                       dt_error *err);

/* The text as a piece in the narrowest width that holds the vocabulary; `count` is the scan's.
 * A character that the tokenizer lacks is an error: it comes from a checkpoint, then. */
dt_status dt_text_encode(dt_token_piece *out, int64_t count, const char *path,
                         const dt_mapping *text, const dt_tokenizer *tokenizer, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
