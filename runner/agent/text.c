#include "runner/agent/text.h"

#include <stdint.h>

#include "base/banned.h"

#define REPLACEMENT "\xEF\xBF\xBD"

/* Bytes of the character at `at`, 0 where there is no valid one. */
static size_t character_bytes(const unsigned char *at, size_t left)
{
    size_t bytes = at[0] < 0x80 ? 1 : at[0] < 0xC2 ? 0 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : 4;
    uint32_t point;

    if (bytes == 1)
        return at[0] != 0;
    if (bytes == 0 || bytes > left || at[0] > 0xF4)
        return 0;
    point = at[0] & (0xFFu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        point = point << 6 | (at[i] & 0x3Fu);
    }
    if (bytes == 3 && (point < 0x800 || (point >= 0xD800 && point <= 0xDFFF)))
        return 0;
    if (bytes == 4 && (point < 0x10000 || point > 0x10FFFF))
        return 0;
    return bytes;
}

void dt_text_clean(dt_strbuf *out, const char *text, size_t length, bool cut)
{
    const unsigned char *at = (const unsigned char *)text;

    if (length > 0 && text[length - 1] == '\r')
        length--;
    for (size_t i = 0, good; i < length; i += good != 0 ? good : 1) {
        good = character_bytes(at + i, length - i);
        if (good != 0)
            dt_strbuf_add(out, text + i, good);
        else
            dt_strbuf_add_str(out, REPLACEMENT);
    }
    if (cut)
        dt_strbuf_add_str(out, DT_TEXT_CUT_MARK);
}
