/* utf8: strict UTF-8, one code point at a time (Unicode 15, table 3-7).
 *
 * Over-long forms, surrogates and what lies beyond U+10FFFF are refused, so that every text has
 * one spelling and a decoded text encodes to the same bytes.
 */
#ifndef DT_BASE_UTF8_H
#define DT_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_UTF8_CODES 0x110000 /* code points are below */
#define DT_UTF8_MAX   4        /* bytes of the longest */

#define DT_UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, for bytes that are none */

/* Bytes of the code point at `at` (1 to 4), of which `left` bytes may be read; 0 where it is broken
 * or cut off. */
size_t dt_utf8_decode(uint32_t *code, const unsigned char *at, size_t left);

/* Bytes of text before the first that is no part of a character; `length` where there is none. */
size_t dt_utf8_valid_length(const char *text, size_t length);

/* Bytes written to out (room for DT_UTF8_MAX). The code point must be one that decodes. */
size_t dt_utf8_encode(char *out, uint32_t code);

/* Appends text as it is, but U+FFFD for each byte that is none of a character: JSON takes it. */
void dt_utf8_add_valid(dt_strbuf *out, const char *text, size_t length);

#ifdef __cplusplus
}
#endif
#endif
