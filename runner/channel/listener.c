#include "runner/channel/listener.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runner/channel/socket.h"

#include "base/alloc.h"

struct dt_listener {
    uv_poll_t poll;
    int fd;
    dt_listener_fn *take;
    void *context;
};

static void on_readable(uv_poll_t *poll, int problem, int events)
{
    dt_listener *listener = poll->data;
    int connection;

    if (problem != 0)
        return;
    connection = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection >= 0)
        listener->take(listener->context, connection);
}

dt_status dt_listener_open(dt_listener **out, uv_loop_t *loop, const char *folder, const char *name,
                           dt_listener_fn *take, void *context, dt_error *err)
{
    dt_listener *listener;
    dt_status st;

    *out = NULL;
    listener = dt_calloc(1, sizeof(*listener));
    st = dt_socket_listen(&listener->fd, folder, name, err);
    if (st != DT_OK) {
        free(listener);
        return st;
    }
    listener->take = take;
    listener->context = context;
    uv_poll_init(loop, &listener->poll, listener->fd);
    listener->poll.data = listener;
    uv_poll_start(&listener->poll, UV_READABLE, on_readable);
    *out = listener;
    return DT_OK;
}

static void on_closed(uv_handle_t *handle)
{
    dt_listener *listener = handle->data;

    close(listener->fd);
    free(listener);
}

void dt_listener_close(dt_listener *listener)
{
    if (listener != NULL && !uv_is_closing((uv_handle_t *)&listener->poll))
        uv_close((uv_handle_t *)&listener->poll, on_closed);
}
