/* charsmap: replaces characters as the normalizer of a SentencePiece model does.
 *
 * Format   a little-endian uint32: the size of the tree in bytes; the tree: a double array of uint32 units, which
 *          maps each key to an offset into the replacements; the replacements: UTF-8 texts, each ending with a
 *          NUL byte
 * Rule     for each grapheme cluster (UAX #29) of less than 6 bytes, the shortest key that is a prefix of the
 *          cluster is looked up, and its replacement replaces the whole cluster. If there is no such key, or the
 *          cluster is longer, each of its characters is looked up in the same way. The library `tokenizers` does
 *          the same
 * Threads  read-only
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
    const char *replacements; /* ends with a NUL byte */
    size_t length;
    const char *ascii[128]; /* replacements of single ASCII characters; NULL: unchanged */
} dt_charsmap;

/* Reads a map. Keeps pointers into bytes, after which a NUL byte must follow. DT_ERR_CORRUPT with
 * the reason. */
dt_status dt_charsmap_read(dt_charsmap *out, const char *bytes, size_t length, dt_error *err);

/* Appends the text (valid UTF-8), with its characters replaced. */
void dt_charsmap_add(dt_strbuf *out, const dt_charsmap *map, const char *text, size_t length);

#ifdef __cplusplus
}
#endif
#endif
