#include "engine/ops/cuda/cudnn.h"

#include <string.h>

#include "base/library.h"

#define WORDS_MAX 512

dt_status dt_cudnn_check(const dt_cudnn *cudnn, int status, const char *what, dt_error *err)
{
    char words[WORDS_MAX] = "";

    if (status == 0)
        return DT_OK;
    if (cudnn->last_words != NULL) /* exists since 9.0; has text only for some errors */
        cudnn->last_words(words, sizeof(words));
    words[sizeof(words) - 1] = '\0';
    words[strcspn(words, "\n")] = '\0';
    return DT_FAIL(err, status / 1000 == 3 ? DT_ERR_UNSUPPORTED : DT_ERR_CUDA, "cudnn: %s: %s%s%s",
                   what, cudnn->status_text(status), words[0] != '\0' ? ": " : "", words);
}

static dt_status find(void *function, const dt_cudnn *cudnn, const char *name, dt_error *err)
{
    return dt_library_find(function, cudnn->library, name, err);
}

dt_status dt_cudnn_open(dt_cudnn *out, dt_error *err)
{
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    DT_TRY(dt_library_open(&out->library, DT_CUDNN_LIBRARY, "DTRUN_CUDNN", err));
    DT_TRY(find(&out->version, out, "cudnnGetVersion", err));
    if (out->version() < DT_CUDNN_OLDEST)
        DT_THROW(err, DT_ERR_UNSUPPORTED, DT_CUDNN_LIBRARY " is version %zu; expected %d or later",
                 out->version(), DT_CUDNN_OLDEST);
    DT_TRY(find(&out->status_text, out, "cudnnGetErrorString", err));
    DT_TRY(find(&out->last_words, out, "cudnnGetLastErrorString", err));
    DT_TRY(find(&out->handle_create, out, "cudnnCreate", err));
    DT_TRY(find(&out->handle_destroy, out, "cudnnDestroy", err));
    DT_TRY(find(&out->stream_set, out, "cudnnSetStream", err));
    DT_TRY(find(&out->create, out, "cudnnBackendCreateDescriptor", err));
    DT_TRY(find(&out->destroy, out, "cudnnBackendDestroyDescriptor", err));
    DT_TRY(find(&out->set, out, "cudnnBackendSetAttribute", err));
    DT_TRY(find(&out->get, out, "cudnnBackendGetAttribute", err));
    DT_TRY(find(&out->finalize, out, "cudnnBackendFinalize", err));
    DT_TRY(find(&out->execute, out, "cudnnBackendExecute", err));
out:
    return st;
}

static void disconnect(dt_cudnn *cudnn)
{
    if (cudnn->handle != NULL)
        (void)cudnn->handle_destroy(cudnn->handle);
    cudnn->handle = NULL;
}

dt_status dt_cudnn_connect(dt_cudnn *cudnn, void *stream, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_cudnn_check(cudnn, cudnn->handle_create(&cudnn->handle), "a handle", err));
    DT_TRY(dt_cudnn_check(cudnn, cudnn->stream_set(cudnn->handle, stream), "the stream", err));
out:
    if (st != DT_OK)
        disconnect(cudnn); /* so that a handle without its stream is never used */
    return st;
}

void dt_cudnn_close(dt_cudnn *cudnn)
{
    disconnect(cudnn);
    memset(cudnn, 0, sizeof(*cudnn));
}
