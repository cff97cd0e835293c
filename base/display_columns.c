/* display_columns: measures the width of text with wcwidth, in a C.UTF-8 locale that is used for nothing else: the
 * program's locale decides how numbers are written. Without C.UTF-8 every character counts as one column. */
#include <locale.h>
#include <stdbool.h>
#include <wchar.h>

#include "base/display.h"
#include "base/utf8.h"

static size_t columns_of(const unsigned char *at, size_t left, size_t *length)
{
    uint32_t code = 0;
    int width;

    if (dt_display_next(length, at, left) != DT_DISPLAY_PLAIN)
        return 1; /* '?' */
    dt_utf8_decode(&code, at, left);
    width = code == '\t' ? 1 : wcwidth((wchar_t)code);
    return width >= 0 ? (size_t)width : 1;
}

/* Returns true for ASCII text, where each byte is one column and no locale is needed. */
static bool is_ascii(const unsigned char *at, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (at[i] >= 0x80)
            return false;
    return true;
}

size_t dt_display_columns(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    size_t columns = 0, step;
    locale_t wide, before;

    if (is_ascii(at, length))
        return length;
    wide = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    before = wide != (locale_t)0 ? uselocale(wide) : (locale_t)0;
    for (; at < end; at += step)
        columns += columns_of(at, (size_t)(end - at), &step);
    if (wide != (locale_t)0) {
        uselocale(before);
        freelocale(wide);
    }
    return columns;
}
