#include "web/utf8.h"

#include "base/utf8.h"

#include "base/banned.h"

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
        uint32_t code;

        if (skip == 0) {
            take = dt_utf8_decode(&code, at, left);
            skip = take > 0 ? take : 1;
            if (take == 0)
                dt_strbuf_add_str(&text, DT_UTF8_REPLACEMENT);
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
