#include "web/utf8.h"

#include <stdint.h>

#include "base/banned.h"

/* Length of the character at `at`, 0 where the bytes are none: overlong forms, surrogates and
 * what is past U+10FFFF included. */
static size_t character_length(const unsigned char *at, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = at[0] < 0x80             ? 1
                    : (at[0] & 0xE0) == 0xC0 ? 2
                    : (at[0] & 0xF0) == 0xE0 ? 3
                    : (at[0] & 0xF8) == 0xF0 ? 4
                                             : 0;
    uint32_t code;

    if (length <= 1)
        return length;
    if (length > left)
        return 0;
    code = at[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3Fu);
    }
    return code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF) ? 0
                                                                                         : length;
}

/* Length of a terminal's control sequence (ESC [ ... letter) at `at`, 0 where there is none. */
static size_t escape_length(const unsigned char *at, size_t left)
{
    size_t i = 2;

    if (left < 3 || at[0] != 0x1B || at[1] != '[')
        return 0;
    while (i < left && at[i] >= 0x20 && at[i] < 0x40)
        i++;
    return i < left && at[i] >= 0x40 && at[i] < 0x7F ? i + 1 : 0;
}

json_t *dt_web_text_json(const char *bytes, size_t length)
{
    const unsigned char *at = (const unsigned char *)bytes;
    dt_strbuf text;
    json_t *json;

    dt_strbuf_init(&text);
    for (size_t left = length; left > 0;) {
        size_t skip = escape_length(at, left), take = 0;

        if (skip == 0) {
            take = character_length(at, left);
            skip = take > 0 ? take : 1;
            if (take == 0)
                dt_strbuf_add(&text, "\xEF\xBF\xBD", 3);
            else if (take > 1 || at[0] == '\t' || at[0] == '\n' || (at[0] >= 0x20 && at[0] != 0x7F))
                dt_strbuf_add(&text, at, take);
        }
        at += skip;
        left -= skip;
    }
    json = json_stringn(text.data, text.length);
    dt_strbuf_release(&text);
    return json;
}
