/* remote_ask: runs a command with a short answer in one call. */
#include "runner/transport/remote.h"

dt_status dt_remote_ask(dt_strbuf *answer, const char *node, const char *const *words,
                        const void *input, size_t input_length, size_t max_bytes,
                        double timeout_seconds, int *code, dt_error *problem,
                        const atomic_bool *cancelled, dt_error *err)
{
    char bytes[16384];
    dt_remote remote;
    dt_status st;
    size_t got;

    dt_strbuf_reset(answer);
    st = dt_remote_open(&remote, node, words, cancelled, err);
    if (st != DT_OK)
        return st;
    /* A write error is ignored: if the command ended before it read everything, its exit code and
     * stderr have the reason. */
    if (dt_remote_write(&remote, input, input_length, timeout_seconds, NULL) == DT_ERR_BUSY)
        DT_THROW(err, DT_ERR_BUSY, "node '%s': cancelled", node);
    dt_remote_write_end(&remote);
    do {
        DT_TRY(dt_remote_read(&remote, bytes, sizeof(bytes), &got, timeout_seconds, err));
        dt_strbuf_add(answer, bytes, got);
        if (answer->length > max_bytes)
            DT_THROW(err, DT_ERR_CORRUPT, "node '%s' answered with more than %zu bytes", node,
                     max_bytes);
    } while (got > 0);
    DT_TRY(dt_remote_finish(&remote, code, problem, timeout_seconds, err));
out:
    dt_remote_close(&remote);
    return st;
}
