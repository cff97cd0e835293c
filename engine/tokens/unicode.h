/* unicode: returns the class of a code point, using libutf8proc.
 *
 * Version    that of the libutf8proc in this build: Unicode 15.0 with Debian 12's 2.8
 */
#ifndef DT_ENGINE_TOKENS_UNICODE_H
#define DT_ENGINE_TOKENS_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every code point is in exactly one class; a set of classes is the bitwise or. */
typedef enum dt_code_class {
    DT_CODE_UPPER = 1,      /* \p{Lu}, \p{Lt} */
    DT_CODE_LOWER = 2,      /* \p{Ll} */
    DT_CODE_CASELESS = 4,   /* \p{Lm}, \p{Lo} */
    DT_CODE_MARK = 8,       /* \p{M} */
    DT_CODE_NUMBER = 16,    /* \p{N} */
    DT_CODE_PUNCT = 32,     /* \p{P} */
    DT_CODE_SYMBOL = 64,    /* \p{S} */
    DT_CODE_SPACE = 128,    /* White_Space */
    DT_CODE_REMAINDER = 256 /* controls, formats, unassigned */
} dt_code_class;

#define DT_CODE_LETTER ((unsigned)(DT_CODE_UPPER | DT_CODE_LOWER | DT_CODE_CASELESS)) /* \p{L} */
#define DT_CODE_ALL    511u

dt_code_class dt_code_class_of(uint32_t code);

/* Returns the code point at `at` and its bytes in *used. The text must be valid UTF-8 and must not
 * end at `at`. */
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
