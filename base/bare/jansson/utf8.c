/* UTF-8 as Unicode defines it: no longer form than needed, no surrogates, up to U+10FFFF. */
#include "base/bare/jansson/jansson_int.h"

#include "base/banned.h"

size_t dt_json_utf8_length(const char *text, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first;
    uint32_t point;
    size_t length;

    if (left == 0)
        return 0;
    first = (unsigned char)text[0];
    if (first < 0x80)
        return 1;
    length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || length > left)
        return 0;
    point = first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | ((unsigned char)text[i] & 0x3f);
    }
    if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
        return 0;
    return length;
}

bool dt_json_utf8_valid(const char *text, size_t length)
{
    for (size_t at = 0, step; at < length; at += step)
        if ((step = dt_json_utf8_length(text + at, length - at)) == 0)
            return false;
    return true;
}
