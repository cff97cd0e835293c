/* numbers: parses numbers of recipes: 1_000, 3e-4, .5; not hexadecimal or "inf". */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/values.h"

bool dt_text_number(double *out, const char *text)
{
    char plain[64];
    size_t length = 0;
    bool digit = false;
    char *end;

    for (const char *at = text; *at != '\0'; at++) {
        bool between =
            at != text && isdigit((unsigned char)at[-1]) && isdigit((unsigned char)at[1]);

        if (*at == '_' && between)
            continue;
        if (strchr("+-.eE0123456789", *at) == NULL || length + 1 == sizeof(plain))
            return false;
        digit = digit || isdigit((unsigned char)*at);
        plain[length++] = *at;
    }
    plain[length] = '\0';
    if (!digit)
        return false;
    *out = strtod(plain, &end);
    return *end == '\0' && isfinite(*out);
}
