/* unicode: classes of code points, and the two ways in which tokenizer files write bytes as text: base64,
 * and the printable characters of a byte-level vocabulary. */
#include <utf8proc.h>

#include "base/display.h"
#include "engine/tokens/tokens_int.h"

/* --- classes */

/* The class of each libutf8proc category. */
static const uint16_t classes[] = {
    [UTF8PROC_CATEGORY_CN] = DT_CODE_REMAINDER, [UTF8PROC_CATEGORY_LU] = DT_CODE_UPPER,
    [UTF8PROC_CATEGORY_LL] = DT_CODE_LOWER,     [UTF8PROC_CATEGORY_LT] = DT_CODE_UPPER,
    [UTF8PROC_CATEGORY_LM] = DT_CODE_CASELESS,  [UTF8PROC_CATEGORY_LO] = DT_CODE_CASELESS,
    [UTF8PROC_CATEGORY_MN] = DT_CODE_MARK,      [UTF8PROC_CATEGORY_MC] = DT_CODE_MARK,
    [UTF8PROC_CATEGORY_ME] = DT_CODE_MARK,      [UTF8PROC_CATEGORY_ND] = DT_CODE_NUMBER,
    [UTF8PROC_CATEGORY_NL] = DT_CODE_NUMBER,    [UTF8PROC_CATEGORY_NO] = DT_CODE_NUMBER,
    [UTF8PROC_CATEGORY_PC] = DT_CODE_PUNCT,     [UTF8PROC_CATEGORY_PD] = DT_CODE_PUNCT,
    [UTF8PROC_CATEGORY_PS] = DT_CODE_PUNCT,     [UTF8PROC_CATEGORY_PE] = DT_CODE_PUNCT,
    [UTF8PROC_CATEGORY_PI] = DT_CODE_PUNCT,     [UTF8PROC_CATEGORY_PF] = DT_CODE_PUNCT,
    [UTF8PROC_CATEGORY_PO] = DT_CODE_PUNCT,     [UTF8PROC_CATEGORY_SM] = DT_CODE_SYMBOL,
    [UTF8PROC_CATEGORY_SC] = DT_CODE_SYMBOL,    [UTF8PROC_CATEGORY_SK] = DT_CODE_SYMBOL,
    [UTF8PROC_CATEGORY_SO] = DT_CODE_SYMBOL,    [UTF8PROC_CATEGORY_ZS] = DT_CODE_SPACE,
    [UTF8PROC_CATEGORY_ZL] = DT_CODE_SPACE,     [UTF8PROC_CATEGORY_ZP] = DT_CODE_SPACE,
    [UTF8PROC_CATEGORY_CC] = DT_CODE_REMAINDER, [UTF8PROC_CATEGORY_CF] = DT_CODE_REMAINDER,
    [UTF8PROC_CATEGORY_CS] = DT_CODE_REMAINDER, [UTF8PROC_CATEGORY_CO] = DT_CODE_REMAINDER,
};

/* Returns whether the code point has the property White_Space, which is the same in every version
 * of Unicode. */
static bool is_space(uint32_t code)
{
    if (code > 0x3000)
        return false;
    if (code < 0x1680)
        return (code >= '\t' && code <= '\r') || code == ' ' || code == 0x85 || code == 0xa0;
    return code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

dt_code_class dt_code_class_of(uint32_t code)
{
    if (is_space(code))
        return DT_CODE_SPACE;
    return (dt_code_class)classes[utf8proc_category((utf8proc_int32_t)code)];
}

/* --- base64 */

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

/* --- bytes as printable characters */

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
