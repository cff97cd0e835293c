#include "web/head.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

const dt_web_head_fault dt_web_nul_in_uri = {400, "the address holds a NUL byte"};

static const dt_web_head_fault too_long = {414, "the address is longer than 32768 bytes"},
                               too_many = {414, "the address has more than 500 arguments"},
                               bad_byte = {400, "the address holds a blank or a control character"},
                               bad_name = {400, "the name of a header is not a token"},
                               bad_value = {400, "the value of a header holds a line break"},
                               twice = {400, "a header that is allowed once appears twice"},
                               body = {400, "this page is read-only: a request cannot have a body"};

const dt_web_head_fault *dt_web_uri_fault(const char *uri)
{
    int arguments = 0;

    if (strlen(uri) > DT_WEB_URI_BYTES_MAX)
        return &too_long;
    for (const char *p = uri; *p != '\0'; p++) {
        if ((unsigned char)*p <= ' ' || *p == 127)
            return &bad_byte;
        if (p[0] == '%' && p[1] == '0' && p[2] == '0')
            return &dt_web_nul_in_uri;
        arguments += *p == '&';
    }
    return arguments >= DT_WEB_ARGUMENTS_MAX ? &too_many : NULL;
}

/* --- headers */

/* Returns true for a token as in RFC 9110, 5.6.2. */
static bool is_token(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (text[i] == '\0' ||
            (!isalnum((unsigned char)text[i]) && strchr("!#$%&'*+-.^_`|~", text[i]) == NULL))
            return false;
    return bytes > 0;
}

static bool is_one_line(const char *text, size_t bytes)
{
    return memchr(text, '\r', bytes) == NULL && memchr(text, '\n', bytes) == NULL;
}

const dt_web_head_fault *dt_web_header_fault(unsigned *seen, const char *name, size_t name_bytes,
                                             const char *value, size_t value_bytes)
{
    static const char *const once[] = {"Host",          "Origin",         "Cookie",
                                       "Authorization", "Content-Length", "Transfer-Encoding"};

    if (!is_token(name, name_bytes))
        return &bad_name;
    if (value_bytes > 0 && !is_one_line(value, value_bytes))
        return &bad_value;
    for (unsigned i = 0; i < sizeof(once) / sizeof(once[0]); i++) {
        if (strlen(once[i]) != name_bytes || strncasecmp(once[i], name, name_bytes) != 0)
            continue;
        if ((*seen & 1u << i) != 0)
            return &twice;
        *seen |= 1u << i;
    }
    if (name_bytes == 17 && strncasecmp(name, "Transfer-Encoding", 17) == 0)
        return &body;
    if (name_bytes == 14 && strncasecmp(name, "Content-Length", 14) == 0 &&
        (value_bytes != 1 || value[0] != '0'))
        return &body;
    return NULL;
}
