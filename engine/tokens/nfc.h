/* nfc: Unicode's composed normal form (UAX #15), which Qwen's tokenizers ask for. */
#ifndef DT_ENGINE_TOKENS_NFC_H
#define DT_ENGINE_TOKENS_NFC_H

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether text (valid UTF-8) is in it for certain, which one look at each code point tells. */
bool dt_nfc_is(const char *text, size_t length);

/* Appends the text in normal form. DT_ERR_NOMEM. */
dt_status dt_nfc_add(dt_strbuf *out, const char *text, size_t length, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
