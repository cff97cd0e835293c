/* forms: converts text to a Unicode normalization form (UAX #15), using libutf8proc. */
#ifndef DT_ENGINE_TOKENS_FORMS_H
#define DT_ENGINE_TOKENS_FORMS_H

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_form { DT_FORM_NFC, DT_FORM_NFD, DT_FORM_NFKC, DT_FORM_NFKD } dt_form;

/* Returns true if text (valid UTF-8) is certainly in the form already; tests each code point by
 * itself. */
bool dt_form_holds(dt_form form, const char *text, size_t length);

/* Appends the text (valid UTF-8) in the form. DT_ERR_NOMEM. */
dt_status dt_form_add(dt_strbuf *out, dt_form form, const char *text, size_t length, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
