/* text: converts UTF-8 in a mapped file to code points and tokens, in two passes, so that a text is never
 * in memory as 32-bit numbers.
 *
 * NUL is refused: it never occurs in text, but does in UTF-16 and binary files.
 * Errors  DT_ERR_RECIPE naming the file and the byte
 */
#ifndef DT_ENGINE_TEXT_H
#define DT_ENGINE_TEXT_H

#include "engine/data/stream.h"
#include "engine/data/tokenizer_int.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Count code points and add them to the set. */
dt_status dt_text_scan(dt_char_set *set, int64_t *count, const char *path, const dt_mapping *text,
                       dt_error *err);

/* Encode the text as a piece in the narrowest width that fits the vocabulary; `count` is from
 * dt_text_scan. A character without a token is an error; this happens only with a checkpoint's
 * tokenizer. */
dt_status dt_text_encode(dt_token_piece *out, int64_t count, const char *path,
                         const dt_mapping *text, const dt_tokenizer *tokenizer, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
