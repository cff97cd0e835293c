#include "base/utf8.h"

#include <string.h>

#include "base/error.h"

size_t dt_utf8_decode(uint32_t *code, const unsigned char *at, size_t left)
{
    static const uint32_t smallest[DT_UTF8_MAX + 1] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t value;
    size_t length;

    if (left == 0)
        return 0;
    if (at[0] < 0x80) {
        *code = at[0];
        return 1;
    }
    if (at[0] >= 0xc2 && at[0] < 0xe0) {
        length = 2;
        value = at[0] & 0x1fu;
    } else if (at[0] >= 0xe0 && at[0] < 0xf0) {
        length = 3;
        value = at[0] & 0x0fu;
    } else if (at[0] >= 0xf0 && at[0] < 0xf5) {
        length = 4;
        value = at[0] & 0x07u;
    } else {
        return 0;
    }
    if (left < length)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (at[i] & 0x3fu);
    }
    if (value < smallest[length] || value >= DT_UTF8_CODES || (value >= 0xd800 && value < 0xe000))
        return 0;
    *code = value;
    return length;
}

size_t dt_utf8_encode(char *out, uint32_t code)
{
    DT_ASSERT(code < DT_UTF8_CODES);
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

void dt_utf8_add_valid(dt_strbuf *out, const char *text, size_t length)
{
    for (size_t at = 0; at < length; at++) { /* continues after an invalid byte */
        size_t valid = dt_utf8_valid_length(text + at, length - at);

        dt_strbuf_add(out, text + at, valid);
        at += valid;
        if (at < length)
            dt_strbuf_add_str(out, DT_UTF8_REPLACEMENT);
    }
}

/* Returns the first place from `at` on where the next eight bytes, or the last ones, are not all ASCII. Compares 64
 * bytes at a time, then eight. */
static size_t skip_ascii(const unsigned char *bytes, size_t at, size_t length)
{
    const uint64_t high = 0x8080808080808080ull;
    uint64_t block[8];

    for (; at + sizeof(block) <= length; at += sizeof(block)) {
        uint64_t any = 0;

        memcpy(block, bytes + at, sizeof(block));
        for (int i = 0; i < 8; i++)
            any |= block[i];
        if ((any & high) != 0)
            break;
    }
    for (; at + 8 <= length; at += 8) {
        memcpy(block, bytes + at, 8);
        if ((block[0] & high) != 0)
            break;
    }
    return at;
}

size_t dt_utf8_valid_length(const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t code;
    size_t used;

    for (size_t at = 0; at < length; at += used) {
        if (bytes[at] < 0x80)
            at = skip_ascii(bytes, at, length);
        used = at < length ? dt_utf8_decode(&code, bytes + at, length - at) : 1;
        if (used == 0)
            return at;
    }
    return length;
}
