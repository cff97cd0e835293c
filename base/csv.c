#include "base/csv.h"

#include <string.h>

void dt_csv_add_text(dt_strbuf *out, const char *text)
{
    bool formula = text[0] != '\0' && strchr("=+-@\t\r", text[0]) != NULL;
    bool quoted = formula || text[strcspn(text, ",\"\r\n")] != '\0';

    if (!quoted) {
        dt_strbuf_add_str(out, text);
        return;
    }
    dt_strbuf_add_str(out, formula ? "\"'" : "\"");
    for (; *text != '\0'; text++) {
        if (*text == '"')
            dt_strbuf_add_char(out, '"');
        dt_strbuf_add_char(out, *text);
    }
    dt_strbuf_add_char(out, '"');
}
