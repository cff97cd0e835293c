/* charsmap: replaces characters as a SentencePiece model's normalizer does.
 *
 * Format   a uint32 of little endian: the bytes of the tree; the tree, a double array of such numbers in which a key
 *          leads to a place in the rest; the rest: replacements (UTF-8), each ends with a byte 0
 * Rule     each grapheme cluster (UAX #29) of less than 6 bytes that begins with a key becomes the replacement of its
 *          shortest one; else each of its characters does so. This is what the library `tokenizers` does
 * Threads  read only
 */
#ifndef DT_ENGINE_TOKENS_CHARSMAP_H
#define DT_ENGINE_TOKENS_CHARSMAP_H

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_charsmap {
    const unsigned char *units; /* [count * 4] */
    size_t count;
    const char *replacements; /* ends with a byte 0 */
    size_t length;
    const char *ascii[128]; /* replacements of single characters; NULL: it stays */
} dt_charsmap;

/* Keeps pointers into bytes, which a byte 0 must follow. DT_ERR_CORRUPT saying what is wrong. */
dt_status dt_charsmap_read(dt_charsmap *out, const char *bytes, size_t length, dt_error *err);

/* Appends the text (valid UTF-8). */
void dt_charsmap_add(dt_strbuf *out, const dt_charsmap *map, const char *text, size_t length);

#ifdef __cplusplus
}
#endif
#endif
