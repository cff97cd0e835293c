/* base64: decodes base64 (RFC 4648, section 4), the end with or without '='. */
#ifndef DT_ENGINE_TOKENS_BASE64_H
#define DT_ENGINE_TOKENS_BASE64_H

#include <stdbool.h>

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Appends the decoded bytes. Returns false if a character is not a base64 digit, or if the text is
 * empty. */
bool dt_base64_decode(dt_strbuf *out, const char *text, size_t length);

#ifdef __cplusplus
}
#endif
#endif
