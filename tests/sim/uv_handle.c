/* uv_handle: simulates all kinds of libuv handles except pipes and processes. */
#include <string.h>

#include "tests/sim/uv_int.h"

sim_handle *sim_handle_open(uv_loop_t *loop, void *uv, uv_handle_type type)
{
    sim_handle *made = sim_alloc(sizeof(*made));
    uv_handle_t *known = uv;

    made->uv = uv;
    made->loop = sim_loop_of(loop);
    made->type = type;
    made->fd = -1;
    made->next = made->loop->handles;
    made->loop->handles = made;
    known->u.reserved[0] = made;
    known->loop = loop;
    known->type = type;
    return made;
}

void uv_close(uv_handle_t *uv, uv_close_cb done)
{
    sim_handle *each = sim_handle_of(uv);

    each->closing = true;
    each->active = false;
    each->on_close = done;
    if (each->type == UV_NAMED_PIPE && each->fd >= 0) {
        sim_fd_close(each->loop->proc, each->fd);
        each->fd = -1;
    }
    if (each->type == UV_PROCESS && each->proc != NULL)
        each->proc->ended = NULL;
}

int uv_is_closing(const uv_handle_t *uv)
{
    return sim_handle_of(uv) == NULL || sim_handle_of(uv)->closing;
}

int uv_is_active(const uv_handle_t *uv)
{
    return sim_handle_of(uv) != NULL && sim_handle_of(uv)->active;
}

void uv_unref(uv_handle_t *uv)
{
    sim_handle_of(uv)->unref = true;
}

void uv_walk(uv_loop_t *uv, uv_walk_cb call, void *context)
{
    for (sim_handle *each = sim_loop_of(uv)->handles, *next; each != NULL; each = next) {
        next = each->next;
        call(each->uv, context);
    }
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *uv)
{
    sim_handle_open(loop, uv, UV_TIMER);
    return 0;
}

int uv_timer_start(uv_timer_t *uv, uv_timer_cb call, uint64_t wait_ms, uint64_t repeat_ms)
{
    sim_handle *timer = sim_handle_of(uv);

    timer->call = (void (*)(void))call;
    timer->due_ns = sim_now_ns + (int64_t)wait_ms * SIM_MS;
    timer->repeat_ns = (int64_t)repeat_ms * SIM_MS;
    timer->order = ++timer->loop->orders;
    timer->active = true;
    sim_loop_wake(timer->loop);
    return 0;
}

int uv_timer_stop(uv_timer_t *uv)
{
    if (sim_handle_of(uv) != NULL)
        sim_handle_of(uv)->active = false;
    return 0;
}

int uv_prepare_init(uv_loop_t *loop, uv_prepare_t *uv)
{
    sim_handle_open(loop, uv, UV_PREPARE);
    return 0;
}

int uv_prepare_start(uv_prepare_t *uv, uv_prepare_cb call)
{
    sim_handle_of(uv)->call = (void (*)(void))call;
    sim_handle_of(uv)->active = true;
    return 0;
}

int uv_check_init(uv_loop_t *loop, uv_check_t *uv)
{
    sim_handle_open(loop, uv, UV_CHECK);
    return 0;
}

int uv_check_start(uv_check_t *uv, uv_check_cb call)
{
    sim_handle_of(uv)->call = (void (*)(void))call;
    sim_handle_of(uv)->active = true;
    return 0;
}

int uv_async_init(uv_loop_t *loop, uv_async_t *uv, uv_async_cb call)
{
    sim_handle *made = sim_handle_open(loop, uv, UV_ASYNC);

    made->call = (void (*)(void))call;
    made->active = true;
    return 0;
}

int uv_async_send(uv_async_t *uv)
{
    sim_handle_of(uv)->pending = true;
    sim_loop_wake(sim_handle_of(uv)->loop);
    return 0;
}

int uv_signal_init(uv_loop_t *loop, uv_signal_t *uv)
{
    sim_handle_open(loop, uv, UV_SIGNAL);
    return 0;
}

int uv_signal_start(uv_signal_t *uv, uv_signal_cb call, int number)
{
    sim_handle *made = sim_handle_of(uv);

    made->call = (void (*)(void))call;
    made->number = number;
    made->active = true;
    made->loop->proc->loop = made->loop;
    return 0;
}

bool sim_loop_signal(sim_loop *loop, int number)
{
    bool heard = false;

    for (sim_handle *each = loop->handles; each != NULL; each = each->next)
        if (each->type == UV_SIGNAL && each->active && each->number == number)
            each->pending = heard = true;
    if (heard)
        sim_loop_wake(loop);
    return heard;
}

int uv_poll_init(uv_loop_t *loop, uv_poll_t *uv, int fd)
{
    sim_handle *made = sim_handle_open(loop, uv, UV_POLL);

    made->fd = fd;
    made->loop->proc->loop = made->loop;
    return 0;
}

int uv_poll_start(uv_poll_t *uv, int events, uv_poll_cb call)
{
    sim_handle_of(uv)->call = (void (*)(void))call;
    sim_handle_of(uv)->active = true;
    return 0;
}
