/* uv_loop: runs loops in turns, as libuv does. */
#include <string.h>

#include "tests/sim/uv_int.h"

void sim_loop_wake(sim_loop *loop)
{
    if (loop != NULL && loop->waiting)
        sim_task_wake(loop->task);
}

/* --- loops */

int uv_loop_init(uv_loop_t *loop)
{
    sim_loop *made = sim_alloc(sizeof(*made));

    memset(loop, 0, sizeof(*loop));
    made->proc = sim_self();
    made->written_last = &made->written;
    made->task = sim_running;
    loop->internal_fields = made;
    return 0;
}

int uv_loop_close(uv_loop_t *loop)
{
    sim_loop *closed = sim_loop_of(loop);

    DT_ASSERT(closed->handles == NULL && "a loop is closed whose handles are open");
    if (closed->proc->loop == closed)
        closed->proc->loop = NULL;
    return 0;
}

uint64_t uv_now(const uv_loop_t *loop)
{
    return (uint64_t)(sim_now_ns / 1000000);
}

void uv_stop(uv_loop_t *loop)
{
    sim_loop_of(loop)->stop = true;
}

static bool is_alive(const sim_loop *loop)
{
    if (loop->works != NULL || loop->written != NULL)
        return true;
    for (const sim_handle *each = loop->handles; each != NULL; each = each->next)
        if ((each->active && !each->unref) || each->closing)
            return true;
    return false;
}

/* --- a turn */

static sim_handle *next_timer(const sim_loop *loop)
{
    sim_handle *first = NULL;

    for (sim_handle *each = loop->handles; each != NULL; each = each->next)
        if (each->type == UV_TIMER && each->active &&
            (first == NULL || each->due_ns < first->due_ns ||
             (each->due_ns == first->due_ns && each->order < first->order)))
            first = each;
    return first;
}

static void run_timers(sim_loop *loop)
{
    int64_t now = sim_now_ns;
    sim_handle *timer;

    while ((timer = next_timer(loop)) != NULL && timer->due_ns <= now) {
        uv_timer_cb call = (uv_timer_cb)timer->call;

        timer->active = timer->repeat_ns > 0;
        timer->due_ns = now + timer->repeat_ns;
        timer->order = ++loop->orders;
        call((uv_timer_t *)timer->uv);
    }
}

static void run_all(sim_loop *loop, uv_handle_type type)
{
    for (sim_handle *each = loop->handles, *next; each != NULL; each = next) {
        next = each->next;
        if (each->type != type || !each->active || each->closing)
            continue;
        if (type == UV_PREPARE)
            ((uv_prepare_cb)each->call)((uv_prepare_t *)each->uv);
        else
            ((uv_check_cb)each->call)((uv_check_t *)each->uv);
    }
}

static bool is_ready(const sim_handle *each)
{
    if (each->closing || !each->active)
        return false;
    if (each->type == UV_NAMED_PIPE)
        return sim_pipe_is_ready(each);
    if (each->type == UV_POLL)
        return each->loop->proc->fds[each->fd].listener->count > 0;
    return each->pending;
}

static void take_input(sim_handle *each)
{
    each->pending = false;
    switch (each->type) {
    case UV_NAMED_PIPE:
        sim_pipe_read(each);
        break;
    case UV_POLL:
        ((uv_poll_cb)each->call)((uv_poll_t *)each->uv, 0, UV_READABLE);
        break;
    case UV_ASYNC:
        ((uv_async_cb)each->call)((uv_async_t *)each->uv);
        break;
    case UV_SIGNAL:
        ((uv_signal_cb)each->call)((uv_signal_t *)each->uv, each->number);
        break;
    case UV_PROCESS:
        each->active = false;
        if (each->on_exit != NULL)
            each->on_exit((uv_process_t *)each->uv, each->code, each->number);
        break;
    default:
        break;
    }
}

static void run_written(sim_loop *loop)
{
    while (loop->written != NULL) {
        sim_written *one = loop->written;

        loop->written = one->next;
        if (loop->written == NULL)
            loop->written_last = &loop->written;
        one->done(one->uv, one->pipe->closing ? UV_ECANCELED : one->status);
    }
}

static void run_works(sim_loop *loop)
{
    sim_work **at = &loop->works;

    while (*at != NULL) {
        sim_work *one = *at;

        if (!one->over) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        one->after(one->uv, one->cancelled ? UV_ECANCELED : 0);
        at = &loop->works; /* the callback may have added some */
    }
}

/* Handles each input that is ready now, once. Input that becomes ready meanwhile waits for the next turn. */
static void run_input(sim_loop *loop)
{
    sim_handle *ready[512];
    int count = 0;

    for (sim_handle *each = loop->handles; each != NULL; each = each->next)
        if (is_ready(each) && count < 512)
            ready[count++] = each;
    run_written(loop);
    run_works(loop);
    while (count > 0) { /* in random order, since epoll promises none */
        int which = count > 1 ? (int)(sim_draw() % (uint64_t)count) : 0;
        sim_handle *each = ready[which];

        ready[which] = ready[--count];
        if (is_ready(each))
            take_input(each);
    }
}

static bool has_closing(const sim_loop *loop)
{
    for (const sim_handle *each = loop->handles; each != NULL; each = each->next)
        if (each->closing)
            return true;
    return false;
}

static void run_closing(sim_loop *loop)
{
    sim_handle *closing = NULL, **last = &closing;

    for (sim_handle **at = &loop->handles; *at != NULL;) {
        sim_handle *each = *at;

        if (!each->closing) {
            at = &each->next;
            continue;
        }
        *at = each->next;
        each->next = NULL;
        *last = each;
        last = &each->next;
    }
    while (closing != NULL) {
        sim_handle *each = closing;

        closing = each->next;
        each->uv->u.reserved[0] = NULL;
        if (each->on_close != NULL)
            each->on_close(each->uv);
    }
}

static bool has_input(const sim_loop *loop)
{
    if (loop->written != NULL)
        return true;
    for (const sim_work *each = loop->works; each != NULL; each = each->next)
        if (each->over)
            return true;
    for (const sim_handle *each = loop->handles; each != NULL; each = each->next)
        if (is_ready(each))
            return true;
    return false;
}

static void wait_for_input(sim_loop *loop)
{
    const sim_handle *timer;

    while (!loop->stop && !has_closing(loop) && !has_input(loop) && is_alive(loop)) {
        timer = next_timer(loop);
        if (timer != NULL && timer->due_ns <= sim_now_ns)
            return;
        loop->waiting = true;
        loop->task = sim_running;
        sim_wait(timer != NULL ? timer->due_ns : SIM_NEVER);
        loop->waiting = false;
    }
}

int uv_run(uv_loop_t *uv, uv_run_mode mode)
{
    sim_loop *loop = sim_loop_of(uv);

    while (is_alive(loop) && !loop->stop) {
        run_timers(loop);
        run_all(loop, UV_PREPARE);
        wait_for_input(loop);
        run_input(loop);
        run_all(loop, UV_CHECK);
        run_closing(loop);
    }
    loop->stop = false;
    return is_alive(loop);
}
