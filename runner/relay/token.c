#include "runner/relay/relay_int.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

#define TOKEN_BYTES_MOST ((size_t)4096)

static dt_status read_token(dt_strbuf *out, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;

    if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 077) != 0)
        DT_THROW(err, DT_ERR_USAGE, "DTRUN_TOKEN_FILE: other users can read '%s': 'chmod 600' it",
                 path);
    st = dt_file_read(out, path, TOKEN_BYTES_MOST, err);
    dt_error_prefix(err, "DTRUN_TOKEN_FILE");
    while (st == DT_OK && out->length > 0 && isspace((unsigned char)out->data[out->length - 1]))
        out->data[--out->length] = '\0';
out:
    return st;
}

/* Refuses spaces and control characters: the token goes into an HTTP header, where a line break
 * would begin another one. */
static dt_status check(const dt_strbuf *token, const char *from, dt_error *err)
{
    for (size_t i = 0; i < token->length; i++)
        if (!isgraph((unsigned char)token->data[i]))
            return DT_FAIL(err, DT_ERR_USAGE,
                           "%s: expected letters and digits without blanks, as after 'token=' in "
                           "the link that 'dtrun serve --link' prints there",
                           from);
    return DT_OK;
}

dt_status dt_relay_token(dt_strbuf *out, dt_error *err)
{
    const char *token = getenv("DTRUN_TOKEN"), *path = getenv("DTRUN_TOKEN_FILE");
    const char *from = "DTRUN_TOKEN";
    dt_status st = DT_OK;

    if (token != NULL && token[0] != '\0') {
        dt_strbuf_add_str(out, token);
    } else if (path != NULL && path[0] != '\0') {
        from = "DTRUN_TOKEN_FILE";
        DT_TRY(read_token(out, path, err));
    }
    DT_TRY(check(out, from, err));
out:
    return st;
}
