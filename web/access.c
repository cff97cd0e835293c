#include "web/access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

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

dt_status dt_web_token_get(dt_web_token *out, const char *folder, bool renew, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf path;

    out->text[0] = '\0';
    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", folder, DT_WEB_TOKEN_FILE);
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

bool dt_web_token_is(const char *given, const char *token)
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
    known = dt_web_token_is(access->cookie, token);
    if (access->page && access->link != NULL)
        return known || dt_web_token_is(access->link, token) ? DT_WEB_SET_COOKIE
                                                             : DT_WEB_WRONG_TOKEN;
    if (access->open || known)
        return DT_WEB_ENTER;
    if (access->authorization != NULL)
        return dt_web_token_is(bearer(access->authorization), token) ? DT_WEB_ENTER
                                                                     : DT_WEB_WRONG_TOKEN;
    /* a cookie with an old token gets 401 (open the link again), not 403 */
    return DT_WEB_ANONYMOUS;
}
