#include "recipes/read/secret.h"

#include <ctype.h>
#include <string.h>

#include "base/strbuf.h"

enum { KEY_LENGTH = 20 };

static const char opening[] = "${env:";

/* Adds the URL without its references but with their defaults. */
static void literal(dt_strbuf *out, const char *url)
{
    const char *found, *end, *fallback;

    while ((found = strstr(url, opening)) != NULL && (end = strchr(found, '}')) != NULL) {
        dt_strbuf_add(out, url, (size_t)(found - url));
        fallback = strstr(found, ":-");
        if (fallback != NULL && fallback < end)
            dt_strbuf_add(out, fallback + 2, (size_t)(end - fallback - 2));
        url = end + 1;
    }
    dt_strbuf_add_str(out, url);
}

/* Returns whether text[0, length) looks random: long, and of two kinds of characters. */
static bool is_key(const char *text, size_t length)
{
    bool upper = false, lower = false, digit = false;

    if (length < KEY_LENGTH)
        return false;
    for (size_t i = 0; i < length; i++) {
        upper = upper || isupper((unsigned char)text[i]);
        lower = lower || islower((unsigned char)text[i]);
        digit = digit || isdigit((unsigned char)text[i]);
    }
    return upper + lower + digit >= 2;
}

/* Returns whether any sequence of key characters looks like a key. */
static bool has_key(const char *text, size_t length)
{
    static const char made_of[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    for (size_t at = 0; at < length;) {
        size_t run = strspn(text + at, made_of);

        if (run > length - at)
            run = length - at;
        if (is_key(text + at, run))
            return true;
        at += run + 1;
    }
    return false;
}

/* Returns whether a value follows an '=' of name=value&... */
static bool has_value(const char *query, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++)
        if (query[i] == '=' && query[i + 1] != '&')
            return true;
    return false;
}

static const char *look(const char *url, dt_url_use use)
{
    const char *scheme = strstr(url, "://"), *at, *path, *query;
    const char *host = scheme != NULL ? scheme + 3 : url, *end = host + strcspn(host, "#");
    size_t authority = strcspn(host, "/?#");

    /* "${env:USER}:${env:PASS}@" leaves ":@" */
    at = memchr(host, '@', authority);
    if (at != NULL && strspn(host, ":") < (size_t)(at - host))
        return "a name or password before '@'";
    path = host + authority;
    query = memchr(path, '?', (size_t)(end - path));
    if (use == DT_URL_WEBHOOK && has_key(path, (size_t)((query != NULL ? query : end) - path)))
        return "what looks like a key in its path";
    if (query != NULL && has_key(query, (size_t)(end - query)))
        return "what looks like a key after '?'";
    if (query != NULL && use == DT_URL_WEBHOOK && has_value(query, (size_t)(end - query)))
        return "a value after '?'";
    return NULL;
}

const char *dt_url_secret(const char *url, dt_url_use use)
{
    const char *found;
    dt_strbuf text;

    dt_strbuf_init(&text);
    literal(&text, url);
    found = look(text.data, use);
    dt_strbuf_release(&text);
    return found;
}
