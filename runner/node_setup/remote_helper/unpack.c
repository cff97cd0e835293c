/* unpack: decompresses the zstd stream that the launch machine sends (transfer/pack.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/alloc.h"
#include "runner/node_setup/remote_helper/remote_helper.h"

#define PIECE_BYTES 131072

struct dt_unpacker {
    const char *what;
    ZSTD_DStream *stream;
    ZSTD_inBuffer in;
    char raw[PIECE_BYTES];
};

dt_status dt_unpacker_new(dt_unpacker **out, const char *what, dt_error *err)
{
    *out = dt_calloc(1, sizeof(**out));
    (*out)->what = what;
    (*out)->stream = ZSTD_createDStream();
    return (*out)->stream != NULL ? DT_OK : DT_FAIL(err, DT_ERR_NOMEM, "no memory");
}

dt_status dt_unpacker_take(dt_unpacker *from, void *bytes, size_t length, dt_error *err)
{
    ZSTD_outBuffer out = {bytes, length, 0};

    while (out.pos < out.size) {
        size_t before = out.pos, code;

        if (from->in.pos == from->in.size) {
            ssize_t got = read(STDIN_FILENO, from->raw, sizeof(from->raw));

            if (got < 0 && errno == EINTR)
                continue;
            if (got <= 0)
                return DT_FAIL(err, DT_ERR_PEER, "the transfer of %s was interrupted", from->what);
            from->in = (ZSTD_inBuffer){from->raw, (size_t)got, 0};
        }
        code = ZSTD_decompressStream(from->stream, &out, &from->in);
        if (ZSTD_isError(code) || (code == 0 && out.pos == before))
            return DT_FAIL(err, DT_ERR_CORRUPT, "%s was damaged in transfer: %s", from->what,
                           ZSTD_isError(code) ? ZSTD_getErrorName(code) : "it is truncated");
    }
    return DT_OK;
}

void dt_unpacker_free(dt_unpacker *from)
{
    if (from != NULL)
        ZSTD_freeDStream(from->stream);
    free(from);
}
