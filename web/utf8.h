/* utf8: text from outside made fit for JSON.
 *
 * A log may hold any bytes; JSON holds only Unicode. Bytes that are not UTF-8 become U+FFFD, and
 * control characters but for tab and line feed are left out (terminal colours whole).
 */
#ifndef DT_WEB_UTF8_H
#define DT_WEB_UTF8_H

#include "base/json.h"

/* New reference to a string; NULL without memory. */
json_t *dt_web_text_json(const char *bytes, size_t length);

#endif
