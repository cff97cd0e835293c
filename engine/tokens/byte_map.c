#include "base/utf8.h"
#include "engine/tokens/bpe_int.h"

static bool stands_for_itself(unsigned byte)
{
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
}

/* Printable bytes stand for themselves; the other bytes map, in their order, to the code points
 * from 256 on. */
uint32_t dt_byte_map_code(unsigned char byte)
{
    uint32_t code = 256;

    if (stands_for_itself(byte))
        return byte;
    for (unsigned other = 0; other < byte; other++)
        code += !stands_for_itself(other);
    return code;
}

static int byte_of(uint32_t code)
{
    if (code < 256)
        return stands_for_itself(code) ? (int)code : -1;
    for (unsigned byte = 0; byte < 256; byte++)
        if (!stands_for_itself(byte) && code-- == 256)
            return (int)byte;
    return -1;
}

bool dt_byte_map_decode(dt_strbuf *out, const char *text, size_t length)
{
    size_t used;

    for (size_t at = 0; at < length; at += used) {
        uint32_t code = 0;
        int byte;

        used = dt_utf8_decode(&code, (const unsigned char *)text + at, length - at);
        byte = used > 0 ? byte_of(code) : -1;
        if (byte < 0)
            return false;
        dt_strbuf_add_char(out, (char)byte);
    }
    return true;
}
