/* access: the checks of every request before it is routed: its head, its origin, its token. */
#include "web/access.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* --- the head */

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
static bool is_header_name(const char *text, size_t bytes)
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
                                       "Authorization", "Content-Length", "Transfer-Encoding",
                                       "Content-Type",  "Sec-Fetch-Site"};

    if (!is_header_name(name, name_bytes))
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
    if ((*seen & DT_WEB_MAY_HAVE_BODY) == 0 && name_bytes == 14 &&
        strncasecmp(name, "Content-Length", 14) == 0 && (value_bytes != 1 || value[0] != '0'))
        return &body;
    return NULL;
}

/* --- method, Host, Origin */

/* Returns true for a name of this machine with the server's port; the port may be missing if it is 80. */
static bool host_is_ours(const char *host, int port, const char *address)
{
    const char *names[] = {"localhost", "127.0.0.1", "[::1]", address};
    char wanted[64];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(wanted, sizeof(wanted), "%s:%d", names[i], port);
        if (strcasecmp(host, wanted) == 0 || (port == 80 && strcasecmp(host, names[i]) == 0))
            return true;
    }
    return false;
}

/* Returns true for a name of this machine with any port, or without one. */
static bool host_is_local(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t length = strlen(names[i]);

        if (strncasecmp(host, names[i], length) == 0 &&
            (host[length] == '\0' ||
             (host[length] == ':' && host[length + 1] != '\0' &&
              host[length + 1 + strspn(host + length + 1, "0123456789")] == '\0')))
            return true;
    }
    return false;
}

int dt_web_gate(const char *method, const char *host, const char *origin, int port,
                const char *address, const char **reason)
{
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        *reason = "this page is read-only: use GET or HEAD";
        return 405;
    }
    if (host == NULL || !(port == 0 ? host_is_local(host) : host_is_ours(host, port, address))) {
        *reason = "the Host header does not name this machine: use http://localhost with the "
                  "server's own port (when forwarding it by ssh, the same port on both sides)";
        return 403;
    }
    if (origin != NULL && (strncmp(origin, "http://", 7) != 0 ||
                           !(port == 0 ? strcasecmp(origin + 7, host) == 0
                                       : host_is_ours(origin + 7, port, address)))) {
        *reason = "requests from other sites are refused";
        return 403;
    }
    return 0;
}

/* --- changes */

static const dt_web_head_fault no_length = {411, "a change needs a Content-Length"},
                               too_large = {413, "the body of a change has at most 192 KiB"},
                               no_json = {415, "a change needs 'Content-Type: application/json'"},
                               other_site = {403, "changes from other sites are refused"},
                               no_origin = {403, "a change with a cookie needs the header Origin"};

const dt_web_head_fault *dt_web_change_fault(const dt_web_change_head *head)
{
    const char *digits = head->length;

    if (head->site != NULL && strcmp(head->site, "same-origin") != 0)
        return &other_site;
    if (head->cookie && head->origin == NULL && head->site == NULL)
        return &no_origin;
    if (head->type == NULL || strcmp(head->type, "application/json") != 0)
        return &no_json;
    if (digits == NULL || digits[0] == '\0' || digits[strspn(digits, "0123456789")] != '\0')
        return &no_length;
    return strlen(digits) > 6 || strtoul(digits, NULL, 10) > DT_WEB_BODY_BYTES_MAX ? &too_large
                                                                                   : NULL;
}

/* --- the token */

enum { TRIES = 3 };

static bool is_token(const char *text)
{
    return strlen(text) == DT_WEB_TOKEN_DIGITS &&
           strspn(text, "0123456789abcdef") == DT_WEB_TOKEN_DIGITS;
}

/* Returns true if the file has a token that no other user can have read. */
static bool token_read(dt_web_token *out, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat info;
    ssize_t got = -1;

    if (fd < 0)
        return false;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        (info.st_mode & 077) == 0)
        got = read(fd, out->text, DT_WEB_TOKEN_DIGITS);
    close(fd);
    out->text[got > 0 ? got : 0] = '\0';
    return is_token(out->text);
}

static dt_status token_draw(dt_web_token *out, dt_error *err)
{
    unsigned char bytes[DT_WEB_TOKEN_DIGITS / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return DT_FAIL(err, DT_ERR_IO, "no random bytes for a token: %s", strerror(errno));
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(out->text + 2 * i, 3, "%02x", bytes[i]);
    return DT_OK;
}

/* Creates the token file. If two servers start at once, link() keeps the complete file of the
 * first, and both use its token. `renew` replaces an existing file. */
static dt_status token_make(dt_web_token *out, const char *path, bool renew, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_strbuf aside;

    dt_strbuf_init(&aside);
    dt_strbuf_add_fmt(&aside, "%s.%ld", path, (long)getpid());
    DT_TRY(token_draw(out, err));
    if (dt_file_write_atomic(aside.data, out->text, DT_WEB_TOKEN_DIGITS, 0600, &problem) != DT_OK)
        DT_THROW(err, DT_ERR_IO,
                 "cannot store a token for the page: %s ('--listen unix:PATH' and '--no-token' "
                 "need none)",
                 problem.message);
    if ((renew ? rename(aside.data, path) : link(aside.data, path)) != 0 && errno != EEXIST)
        st = DT_FAIL(err, DT_ERR_IO, "cannot make the token '%s': %s", path, strerror(errno));
    if (!renew || st != DT_OK)
        unlink(aside.data);
out:
    dt_strbuf_release(&aside);
    return st;
}

bool dt_web_token_read(dt_web_token *out, const char *folder, const char *file)
{
    dt_strbuf path;
    bool there;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", folder, file);
    there = token_read(out, path.data);
    dt_strbuf_release(&path);
    return there;
}

dt_status dt_web_token_get(dt_web_token *out, const char *folder, const char *file, bool renew,
                           dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf path;

    out->text[0] = '\0';
    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", folder, file);
    for (int i = 0; i < TRIES; i++) {
        if (!renew && token_read(out, path.data))
            goto out;
        /* an existing file that token_read refused is replaced */
        DT_TRY(token_make(out, path.data, renew || i > 0, err));
        renew = false;
    }
    if (!token_read(out, path.data))
        DT_THROW(err, DT_ERR_IO,
                 "cannot use the token '%s': something replaces it after it is written", path.data);
out:
    dt_strbuf_release(&path);
    return st;
}

/* Compares in constant time. */
static bool web_token_is(const char *given, const char *token)
{
    unsigned differs = 0;
    size_t length;

    if (given == NULL)
        return false;
    length = strlen(given);
    differs = length != DT_WEB_TOKEN_DIGITS;
    for (size_t i = 0; i < DT_WEB_TOKEN_DIGITS; i++)
        differs |= (unsigned)(unsigned char)given[i < length ? i : length] ^
                   (unsigned)(unsigned char)token[i];
    return differs == 0;
}

static const char *bearer(const char *authorization)
{
    return strncasecmp(authorization, "Bearer ", 7) == 0 ? authorization + 7 : "";
}

dt_web_entry dt_web_entry_of(const dt_web_access_request *access, const char *token)
{
    bool known;

    if (token == NULL)
        return DT_WEB_ENTER;
    known = web_token_is(access->cookie, token);
    if (access->page && access->link != NULL)
        return known || web_token_is(access->link, token) ? DT_WEB_SET_COOKIE : DT_WEB_WRONG_TOKEN;
    if (access->open || known)
        return DT_WEB_ENTER;
    if (access->authorization != NULL)
        return web_token_is(bearer(access->authorization), token) ? DT_WEB_ENTER
                                                                  : DT_WEB_WRONG_TOKEN;
    /* a cookie with an old token gets 401 (open the link again), not 403 */
    return DT_WEB_ANONYMOUS;
}
