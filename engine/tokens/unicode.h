/* unicode: what splitting text into words asks of a code point.
 *
 * Letters are \p{L}, numbers \p{N}, spaces White_Space, of Unicode 15.0 (unicode_tables.py).
 */
#ifndef DT_ENGINE_TOKENS_UNICODE_H
#define DT_ENGINE_TOKENS_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_code_class {
    DT_CODE_OTHER,
    DT_CODE_LETTER,
    DT_CODE_NUMBER,
    DT_CODE_SPACE
} dt_code_class;

dt_code_class dt_code_class_of(uint32_t code);

/* Whether NFC may change it or what stands before it: false for nearly all text. */
bool dt_code_is_unstable(uint32_t code);

/* The code point at `at` of valid UTF-8 that does not end there, and its bytes in *used. */
static inline uint32_t dt_code_at(const unsigned char *at, size_t *used)
{
    if (at[0] < 0x80) {
        *used = 1;
        return at[0];
    }
    if (at[0] < 0xe0) {
        *used = 2;
        return (uint32_t)(at[0] & 0x1f) << 6 | (at[1] & 0x3f);
    }
    if (at[0] < 0xf0) {
        *used = 3;
        return (uint32_t)(at[0] & 0x0f) << 12 | (uint32_t)(at[1] & 0x3f) << 6 | (at[2] & 0x3f);
    }
    *used = 4;
    return (uint32_t)(at[0] & 0x07) << 18 | (uint32_t)(at[1] & 0x3f) << 12 |
           (uint32_t)(at[2] & 0x3f) << 6 | (at[3] & 0x3f);
}

#ifdef __cplusplus
}
#endif
#endif
