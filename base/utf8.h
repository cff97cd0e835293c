/* utf8: decodes and encodes strict UTF-8, one code point at a time (Unicode 15, table 3-7).
 *
 * Refuses over-long forms, surrogates and code points above U+10FFFF, so that every text has one spelling and a
 * decoded text encodes to the same bytes.
 */
#ifndef DT_BASE_UTF8_H
#define DT_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_UTF8_CODES 0x110000 /* number of code points */
#define DT_UTF8_MAX   4        /* of the longest code point */

#define DT_UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, for invalid bytes */

/* Decodes the code point at `at`, of which `left` bytes may be read. Returns its bytes (1 to 4), or 0 if it is invalid
 * or truncated. */
size_t dt_utf8_decode(uint32_t *code, const unsigned char *at, size_t left);

/* Returns the number of bytes before the first invalid byte; `length` if all are valid. */
size_t dt_utf8_valid_length(const char *text, size_t length);

/* Writes the code point, which must be valid, to `out` (DT_UTF8_MAX bytes). Returns the bytes written. */
size_t dt_utf8_encode(char *out, uint32_t code);

/* Appends the text, with U+FFFD for each invalid byte, so that it can be used in JSON. */
void dt_utf8_add_valid(dt_strbuf *out, const char *text, size_t length);

#ifdef __cplusplus
}
#endif
#endif
