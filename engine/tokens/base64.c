#include "engine/tokens/base64.h"

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool dt_base64_decode(dt_strbuf *out, const char *text, size_t length)
{
    unsigned held = 0, bits = 0;

    while (length > 0 && text[length - 1] == '=')
        length--;
    for (size_t i = 0; i < length; i++) {
        int digit = digit_of(text[i]);

        if (digit < 0)
            return false;
        held = (held << 6 | (unsigned)digit) & 0xfff;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            dt_strbuf_add_char(out, (char)(held >> bits));
        }
    }
    return length > 0 && bits < 6; /* a single last digit does not make a byte */
}
