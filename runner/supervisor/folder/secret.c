/* secret: reads or creates the secret of a run, with which its ranks authenticate to each other. It is in a
 * file of the run's folder and in the ranks' environment; no plan, journal, log or store holds it.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/file.h"
#include "runner/supervisor/folder/run_folder.h"

enum { SECRET_BYTES = 32, SECRET_DIGITS = 2 * SECRET_BYTES };

static dt_status make(dt_strbuf *out, const char *path, dt_error *err)
{
    unsigned char bytes[SECRET_BYTES];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return DT_FAIL(err, DT_ERR_IO, "cannot get random bytes for the run's secret: %s",
                       strerror(errno));
    dt_strbuf_reset(out);
    for (size_t i = 0; i < sizeof(bytes); i++)
        dt_strbuf_add_fmt(out, "%02x", bytes[i]);
    return dt_file_write_atomic(path, out->data, out->length, 0600, err);
}

dt_status dt_run_secret(const char **out, const char *folder, dt_arena *arena, dt_error *err)
{
    dt_strbuf path, text;
    dt_status st;

    *out = NULL;
    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&path, "%s/secret", folder);
    st = dt_file_read(&text, path.data, SECRET_DIGITS, NULL);
    if (st != DT_OK || text.length != SECRET_DIGITS)
        DT_TRY(make(&text, path.data, err));
    *out = dt_arena_strndup(arena, text.data, text.length);
    st = DT_OK;
out:
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}
