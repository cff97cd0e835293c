/* pack: sends bytes to a command on a node as one zstd stream (remote_helper/unpack.c reads it). */
#include <stdlib.h>
#include <zstd.h>

#include "base/alloc.h"
#include "runner/node_setup/node_setup_int.h"

#define PIECE_BYTES ((size_t)262144)
#define LEVEL       1 /* as fast as a fast network, and packs a bundle to a third of its size */

struct dt_packer {
    dt_remote *to;
    double stall_seconds;
    ZSTD_CStream *stream;
    char packed[PIECE_BYTES];
};

dt_status dt_packer_new(dt_packer **out, dt_remote *to, double stall_seconds, dt_error *err)
{
    *out = dt_calloc(1, sizeof(**out));
    (*out)->to = to;
    (*out)->stall_seconds = stall_seconds;
    (*out)->stream = ZSTD_createCStream();
    if ((*out)->stream == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    (void)ZSTD_CCtx_setParameter((*out)->stream, ZSTD_c_compressionLevel, LEVEL);
    return DT_OK;
}

dt_status dt_packer_put(dt_packer *all, const void *bytes, size_t length, bool last, dt_error *err)
{
    ZSTD_inBuffer in = {bytes, length, 0};
    size_t left;

    do {
        ZSTD_outBuffer out = {all->packed, PIECE_BYTES, 0};
        dt_status st;

        left = ZSTD_compressStream2(all->stream, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            return DT_FAIL(err, DT_ERR_NOMEM, "zstd: %s", ZSTD_getErrorName(left));
        st = dt_remote_write(all->to, all->packed, out.pos, all->stall_seconds, err);
        if (st != DT_OK)
            return st;
    } while (last ? left > 0 : in.pos < in.size);
    return DT_OK;
}

void dt_packer_free(dt_packer *all)
{
    if (all != NULL)
        ZSTD_freeCStream(all->stream);
    free(all);
}
