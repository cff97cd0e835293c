#include "runner/transport/quote.h"

#include <string.h>

static const char plain[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@+";

void dt_quote_word(dt_strbuf *out, const char *word)
{
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        dt_strbuf_add_str(out, word);
        return;
    }
    dt_strbuf_add_char(out, '\'');
    for (; *word != '\0'; word++)
        if (*word == '\'')
            dt_strbuf_add_str(out, "'\\''");
        else
            dt_strbuf_add_char(out, *word);
    dt_strbuf_add_char(out, '\'');
}

void dt_quote_script(dt_strbuf *out, const char *script)
{
    dt_strbuf_add_str(out, "exec /bin/sh -c 'eval \"$(printf \"");
    for (; *script != '\0'; script++)
        if (*script == ' ' || strchr(plain, *script) != NULL)
            dt_strbuf_add_char(out, *script);
        else
            dt_strbuf_add_fmt(out, "\\%03o", (unsigned)(unsigned char)*script);
    dt_strbuf_add_str(out, "\")\"'");
}
