/* json_shorten: rewrites the numbers of a JSON text as Python does, with the fewest digits that
 * read back the same: dtrun's files have 17 digits (1.0000000000000001e-05 for 0.00001). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static void add_number(dt_strbuf *out, double value)
{
    char digits[32];
    int count = 0, exponent;

    do
        snprintf(digits, sizeof(digits), "%.*e", count, value);
    while (strtod(digits, NULL) != value && ++count < 17);
    exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exponent < -4 || exponent > 15)
        dt_strbuf_add_str(out, digits);
    else
        dt_strbuf_add_fmt(out, "%.*f", count > exponent ? count - exponent : 1, value);
}

/* Returns the end of the string that begins at `text`. */
static const char *skip_string(const char *text)
{
    for (text++; *text != '"'; text++)
        if (*text == '\\')
            text++;
    return text + 1;
}

void dt_json_shorten(dt_strbuf *out, const char *text)
{
    while (*text != '\0') {
        size_t digits = strspn(text, "-+.0123456789eE"), other = strcspn(text, "\"-0123456789");

        if (*text == '"') {
            const char *end = skip_string(text);

            dt_strbuf_add(out, text, (size_t)(end - text));
            text = end;
        } else if (other > 0) { /* also skips "true": its e does not follow a digit */
            dt_strbuf_add(out, text, other);
            text += other;
        } else {
            if (strcspn(text, ".eE") < digits)
                add_number(out, strtod(text, NULL));
            else
                dt_strbuf_add(out, text, digits);
            text += digits;
        }
    }
}
