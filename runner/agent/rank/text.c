#include "runner/agent/rank/text.h"

#include "base/display.h"

void dt_text_clean(dt_strbuf *out, const char *text, size_t length, bool cut)
{
    const unsigned char *at = (const unsigned char *)text;

    if (length > 0 && text[length - 1] == '\r')
        length--;
    for (size_t i = 0, good; i < length; i += good != 0 ? good : 1) {
        uint32_t code = 0;

        good = dt_utf8_decode(&code, at + i, length - i);
        if (good != 0 && code != 0)
            dt_strbuf_add(out, text + i, good);
        else
            dt_strbuf_add_str(out, DT_UTF8_REPLACEMENT);
    }
    if (cut)
        dt_strbuf_add_str(out, DT_TEXT_CUT_MARK);
}
