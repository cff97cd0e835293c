/* chars: collects the code points of a text, the vocabulary of a "char" tokenizer.
 *
 * Uses one bit per code point: 136 KB for any text.
 */
#ifndef DT_ENGINE_CHARS_H
#define DT_ENGINE_CHARS_H

#include "base/utf8.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_char_set {
    uint64_t bits[DT_UTF8_CODES / 64];
} dt_char_set;

void dt_char_set_add(dt_char_set *set, uint32_t code);
int64_t dt_char_set_count(const dt_char_set *set);
/* List the code points, ascending; `out` has dt_char_set_count elements. */
void dt_char_set_list(uint32_t *out, const dt_char_set *set);

#ifdef __cplusplus
}
#endif
#endif
