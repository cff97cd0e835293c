/* uv: the part of libuv that the programs use, on virtual time, in the order of turns that libuv
 * has: timers, prepare, input, check, closing. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include <sys/wait.h>

#include "tests/sim/sim.h"

#include "base/banned.h"

typedef struct handle {
    struct handle *next;
    uv_handle_t *uv;
    sim_loop *loop;
    uv_handle_type type;
    bool active, closing, unref;
    uv_close_cb on_close;

    /* timer, prepare, check, async, signal, poll */
    void (*call)(void);
    int64_t due_ns, repeat_ns, order;
    bool pending;
    int number;

    /* pipe */
    int fd;
    uv_alloc_cb alloc;
    uv_read_cb read;
    bool told_end;

    /* process */
    sim_proc *proc;
    uv_exit_cb on_exit;
    int64_t code;
} handle;

typedef struct work {
    struct work *next;
    uv_work_t *uv;
    uv_work_cb run;
    uv_after_work_cb after;
    sim_loop *loop;
    sim_task *task;
    bool begun, over, cancelled;
} work;

typedef struct written {
    struct written *next;
    uv_write_t *uv;
    uv_write_cb done;
    handle *pipe;
    int status;
} written;

struct sim_loop {
    sim_proc *proc;
    sim_task *task; /* that runs it */
    handle *handles;
    work *works;
    written *written, **written_last;
    bool stop, waiting;
    int64_t orders;
};

static sim_loop *loop_of(const uv_loop_t *loop)
{
    return (sim_loop *)loop->internal_fields;
}

static handle *handle_of(const uv_handle_t *uv)
{
    return (handle *)uv->u.reserved[0];
}

static handle *take(uv_loop_t *loop, uv_handle_t *uv, uv_handle_type type)
{
    handle *made = sim_alloc(sizeof(*made));

    made->uv = uv;
    made->loop = loop_of(loop);
    made->type = type;
    made->fd = -1;
    made->next = made->loop->handles;
    made->loop->handles = made;
    uv->u.reserved[0] = made;
    uv->loop = loop;
    uv->type = type;
    return made;
}

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
    sim_loop *closed = loop_of(loop);

    DT_ASSERT(closed->handles == NULL && "a loop is closed whose handles are open");
    if (closed->proc->loop == closed)
        closed->proc->loop = NULL;
    return 0;
}

void uv_stop(uv_loop_t *loop)
{
    loop_of(loop)->stop = true;
}

static bool is_alive(const sim_loop *loop)
{
    if (loop->works != NULL || loop->written != NULL)
        return true;
    for (const handle *each = loop->handles; each != NULL; each = each->next)
        if ((each->active && !each->unref) || each->closing)
            return true;
    return false;
}

/* --- a turn */

static handle *next_timer(const sim_loop *loop)
{
    handle *first = NULL;

    for (handle *each = loop->handles; each != NULL; each = each->next)
        if (each->type == UV_TIMER && each->active &&
            (first == NULL || each->due_ns < first->due_ns ||
             (each->due_ns == first->due_ns && each->order < first->order)))
            first = each;
    return first;
}

static void run_timers(sim_loop *loop)
{
    int64_t now = sim_now_ns;
    handle *timer;

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
    for (handle *each = loop->handles, *next; each != NULL; each = next) {
        next = each->next;
        if (each->type != type || !each->active || each->closing)
            continue;
        if (type == UV_PREPARE)
            ((uv_prepare_cb)each->call)((uv_prepare_t *)each->uv);
        else
            ((uv_check_cb)each->call)((uv_check_t *)each->uv);
    }
}

static sim_end *end_of(const handle *pipe)
{
    return sim_fd_end(pipe->loop->proc, pipe->fd);
}

static bool is_ready(const handle *each)
{
    const sim_end *end;

    if (each->closing || !each->active)
        return false;
    if (each->type == UV_NAMED_PIPE) {
        end = end_of(each);
        return end != NULL && each->read != NULL &&
               (sim_end_waiting(end) > 0 || (end->eof && !each->told_end));
    }
    if (each->type == UV_POLL)
        return each->loop->proc->fds[each->fd].listener->count > 0;
    return each->pending;
}

static void read_pipe(handle *pipe)
{
    sim_end *end = end_of(pipe);
    uv_buf_t buf;
    size_t got;

    if (sim_end_waiting(end) == 0) {
        buf = uv_buf_init(NULL, 0);
        pipe->told_end = true;
        pipe->read((uv_stream_t *)pipe->uv, UV_EOF, &buf);
        return;
    }
    pipe->alloc(pipe->uv, 65536, &buf);
    got = sim_end_read(end, buf.base, buf.len);
    pipe->read((uv_stream_t *)pipe->uv, (ssize_t)got, &buf);
}

static void take_input(handle *each)
{
    each->pending = false;
    switch (each->type) {
    case UV_NAMED_PIPE:
        read_pipe(each);
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
        written *one = loop->written;

        loop->written = one->next;
        if (loop->written == NULL)
            loop->written_last = &loop->written;
        one->done(one->uv, one->pipe->closing ? UV_ECANCELED : one->status);
    }
}

static void run_works(sim_loop *loop)
{
    work **at = &loop->works;

    while (*at != NULL) {
        work *one = *at;

        if (!one->over) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        one->after(one->uv, one->cancelled ? UV_ECANCELED : 0);
        at = &loop->works; /* it may have added some */
    }
}

/* What is ready now, each once; what that makes ready waits for the next turn. */
static void run_input(sim_loop *loop)
{
    handle *ready[512];
    int count = 0;

    for (handle *each = loop->handles; each != NULL; each = each->next)
        if (is_ready(each) && count < 512)
            ready[count++] = each;
    run_written(loop);
    run_works(loop);
    while (count > 0) { /* epoll promises no order */
        int which = count > 1 ? (int)(sim_draw() % (uint64_t)count) : 0;
        handle *each = ready[which];

        ready[which] = ready[--count];
        if (is_ready(each))
            take_input(each);
    }
}

static bool has_closing(const sim_loop *loop)
{
    for (const handle *each = loop->handles; each != NULL; each = each->next)
        if (each->closing)
            return true;
    return false;
}

static void run_closing(sim_loop *loop)
{
    handle *closing = NULL, **last = &closing;

    for (handle **at = &loop->handles; *at != NULL;) {
        handle *each = *at;

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
        handle *each = closing;

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
    for (const work *each = loop->works; each != NULL; each = each->next)
        if (each->over)
            return true;
    for (const handle *each = loop->handles; each != NULL; each = each->next)
        if (is_ready(each))
            return true;
    return false;
}

static void wait_for_input(sim_loop *loop)
{
    const handle *timer;

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
    sim_loop *loop = loop_of(uv);

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

/* --- handles */

void uv_close(uv_handle_t *uv, uv_close_cb done)
{
    handle *each = handle_of(uv);

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
    return handle_of(uv) == NULL || handle_of(uv)->closing;
}

int uv_is_active(const uv_handle_t *uv)
{
    return handle_of(uv) != NULL && handle_of(uv)->active;
}

void uv_unref(uv_handle_t *uv)
{
    handle_of(uv)->unref = true;
}

void uv_walk(uv_loop_t *uv, uv_walk_cb call, void *context)
{
    for (handle *each = loop_of(uv)->handles, *next; each != NULL; each = next) {
        next = each->next;
        call(each->uv, context);
    }
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *uv)
{
    take(loop, (uv_handle_t *)uv, UV_TIMER);
    return 0;
}

int uv_timer_start(uv_timer_t *uv, uv_timer_cb call, uint64_t wait_ms, uint64_t repeat_ms)
{
    handle *timer = handle_of((uv_handle_t *)uv);

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
    if (handle_of((uv_handle_t *)uv) != NULL)
        handle_of((uv_handle_t *)uv)->active = false;
    return 0;
}

int uv_prepare_init(uv_loop_t *loop, uv_prepare_t *uv)
{
    take(loop, (uv_handle_t *)uv, UV_PREPARE);
    return 0;
}

int uv_prepare_start(uv_prepare_t *uv, uv_prepare_cb call)
{
    handle_of((uv_handle_t *)uv)->call = (void (*)(void))call;
    handle_of((uv_handle_t *)uv)->active = true;
    return 0;
}

int uv_check_init(uv_loop_t *loop, uv_check_t *uv)
{
    take(loop, (uv_handle_t *)uv, UV_CHECK);
    return 0;
}

int uv_check_start(uv_check_t *uv, uv_check_cb call)
{
    handle_of((uv_handle_t *)uv)->call = (void (*)(void))call;
    handle_of((uv_handle_t *)uv)->active = true;
    return 0;
}

int uv_async_init(uv_loop_t *loop, uv_async_t *uv, uv_async_cb call)
{
    handle *made = take(loop, (uv_handle_t *)uv, UV_ASYNC);

    made->call = (void (*)(void))call;
    made->active = true;
    return 0;
}

int uv_async_send(uv_async_t *uv)
{
    handle_of((uv_handle_t *)uv)->pending = true;
    sim_loop_wake(handle_of((uv_handle_t *)uv)->loop);
    return 0;
}

int uv_signal_init(uv_loop_t *loop, uv_signal_t *uv)
{
    take(loop, (uv_handle_t *)uv, UV_SIGNAL);
    return 0;
}

int uv_signal_start(uv_signal_t *uv, uv_signal_cb call, int number)
{
    handle *made = handle_of((uv_handle_t *)uv);

    made->call = (void (*)(void))call;
    made->number = number;
    made->active = true;
    made->loop->proc->loop = made->loop;
    return 0;
}

bool sim_loop_signal(sim_loop *loop, int number)
{
    bool heard = false;

    for (handle *each = loop->handles; each != NULL; each = each->next)
        if (each->type == UV_SIGNAL && each->active && each->number == number)
            each->pending = heard = true;
    if (heard)
        sim_loop_wake(loop);
    return heard;
}

int uv_poll_init(uv_loop_t *loop, uv_poll_t *uv, int fd)
{
    handle *made = take(loop, (uv_handle_t *)uv, UV_POLL);

    made->fd = fd;
    made->loop->proc->loop = made->loop;
    return 0;
}

int uv_poll_start(uv_poll_t *uv, int events, uv_poll_cb call)
{
    handle_of((uv_handle_t *)uv)->call = (void (*)(void))call;
    handle_of((uv_handle_t *)uv)->active = true;
    return 0;
}

/* --- pipes */

int uv_pipe_init(uv_loop_t *loop, uv_pipe_t *uv, int ipc)
{
    take(loop, (uv_handle_t *)uv, UV_NAMED_PIPE);
    return 0;
}

int uv_pipe_open(uv_pipe_t *uv, uv_file fd)
{
    handle *pipe = handle_of((uv_handle_t *)uv);
    sim_end *end = sim_fd_end(pipe->loop->proc, fd);

    if (end == NULL)
        return UV_EBADF;
    pipe->fd = fd;
    pipe->loop->proc->fds[fd].nonblocking = true;
    end->loop = pipe->loop;
    return 0;
}

int uv_read_start(uv_stream_t *uv, uv_alloc_cb alloc, uv_read_cb call)
{
    handle *pipe = handle_of((uv_handle_t *)uv);

    pipe->alloc = alloc;
    pipe->read = call;
    pipe->active = true;
    sim_loop_wake(pipe->loop);
    return 0;
}

int uv_read_stop(uv_stream_t *uv)
{
    handle_of((uv_handle_t *)uv)->active = false;
    return 0;
}

int uv_write(uv_write_t *request, uv_stream_t *uv, const uv_buf_t bufs[], unsigned count,
             uv_write_cb done)
{
    handle *pipe = handle_of((uv_handle_t *)uv);
    sim_end *end = end_of(pipe);
    written *one = sim_alloc(sizeof(*one));

    one->uv = request;
    one->done = done;
    one->pipe = pipe;
    if (end == NULL || !sim_end_write(end, bufs[0].base, bufs[0].len))
        one->status = UV_EPIPE;
    *pipe->loop->written_last = one;
    pipe->loop->written_last = &one->next;
    sim_loop_wake(pipe->loop);
    return 0;
}

size_t uv_stream_get_write_queue_size(const uv_stream_t *uv)
{
    return 0;
}

int uv_fileno(const uv_handle_t *uv, uv_os_fd_t *fd)
{
    *fd = handle_of(uv)->fd;
    return *fd >= 0 ? 0 : UV_EBADF;
}

/* --- processes: all that a supervisor spawns reaches a node (net.c) */

static void on_ended(sim_proc *proc, void *context)
{
    handle *process = context;

    process->pending = true;
    process->code = WIFSIGNALED(proc->wait_status) ? 0 : proc->wait_status >> 8;
    process->number = WIFSIGNALED(proc->wait_status) ? WTERMSIG(proc->wait_status) : 0;
    process->proc = NULL;
    sim_loop_wake(process->loop);
}

static sim_end *stdio_end(const uv_process_options_t *options, int which)
{
    return which < options->stdio_count ? sim_fd_end(sim_self(), options->stdio[which].data.fd)
                                        : NULL;
}

int uv_spawn(uv_loop_t *loop, uv_process_t *uv, const uv_process_options_t *options)
{
    handle *process = take(loop, (uv_handle_t *)uv, UV_PROCESS);

    process->on_exit = options->exit_cb;
    process->active = true;
    process->proc = sim_net_reach(sim_self(), (const char *const *)options->args,
                                  stdio_end(options, 0), stdio_end(options, 2));
    process->proc->ended = on_ended;
    process->proc->ended_context = process;
    uv->pid = process->proc->pid;
    return 0;
}

int uv_process_kill(uv_process_t *uv, int number)
{
    handle *process = handle_of((uv_handle_t *)uv);

    if (process->proc == NULL)
        return UV_ESRCH;
    sim_proc_signal(process->proc, number);
    return 0;
}

/* --- the pool, threads */

static void add_task(sim_proc *proc, sim_task *task)
{
    for (int i = 0; i < proc->task_count; i++)
        if (sim_task_is_over(proc->tasks[i])) {
            proc->tasks[i] = task;
            return;
        }
    DT_ASSERT(proc->task_count < SIM_TASKS);
    proc->tasks[proc->task_count++] = task;
}

static void run_work(void *context)
{
    work *one = context;

    one->begun = true;
    if (!one->cancelled)
        one->run(one->uv);
    one->over = true;
    sim_loop_wake(one->loop);
}

int uv_queue_work(uv_loop_t *loop, uv_work_t *uv, uv_work_cb run, uv_after_work_cb after)
{
    work *one = sim_alloc(sizeof(*one));

    one->uv = uv;
    one->run = run;
    one->after = after;
    one->loop = loop_of(loop);
    one->next = one->loop->works;
    one->loop->works = one;
    uv->loop = loop;
    uv->work_req.wq[0] = one;
    one->task = sim_task_start(one->loop->proc, run_work, one);
    add_task(one->loop->proc, one->task);
    return 0;
}

int uv_cancel(uv_req_t *request)
{
    work *one = ((uv_work_t *)request)->work_req.wq[0];

    if (one->begun)
        return UV_EBUSY;
    one->cancelled = true;
    return 0;
}

typedef struct thread {
    uv_thread_cb run;
    void *context;
    sim_task *task;
} thread;

static void run_thread(void *context)
{
    thread *one = context;

    one->run(one->context);
}

int uv_thread_create(uv_thread_t *uv, uv_thread_cb run, void *context)
{
    thread *one = sim_alloc(sizeof(*one));

    one->run = run;
    one->context = context;
    one->task = sim_task_start(sim_self(), run_thread, one);
    add_task(sim_self(), one->task);
    *uv = (uv_thread_t)one;
    return 0;
}

int uv_thread_join(uv_thread_t *uv)
{
    const thread *one = (const thread *)*uv; /* NOLINT: that is what create put there */

    while (!sim_task_is_over(one->task))
        sim_wait(sim_now_ns + SIM_MS);
    return 0;
}

/* A lock is a word; who finds it held looks again after a microsecond. */
static int *word_of(uv_mutex_t *lock)
{
    return (int *)(void *)lock;
}

int uv_mutex_init(uv_mutex_t *lock)
{
    memset(lock, 0, sizeof(*lock));
    return 0;
}

void uv_mutex_destroy(uv_mutex_t *lock) {}

void uv_mutex_lock(uv_mutex_t *lock)
{
    while (*word_of(lock) != 0)
        sim_wait(sim_now_ns + 1000);
    *word_of(lock) = 1;
}

void uv_mutex_unlock(uv_mutex_t *lock)
{
    *word_of(lock) = 0;
}

/* A condition keeps those who wait; being woken for nothing is allowed. */
enum { WAITERS = 4 };
typedef struct waiters {
    sim_task *tasks[WAITERS];
} waiters;
_Static_assert(sizeof(waiters) <= sizeof(uv_cond_t), "a condition has room for who waits");

int uv_cond_init(uv_cond_t *cond)
{
    memset(cond, 0, sizeof(*cond));
    return 0;
}

void uv_cond_destroy(uv_cond_t *cond) {}

void uv_cond_broadcast(uv_cond_t *cond)
{
    waiters *all = (waiters *)(void *)cond;

    for (int i = 0; i < WAITERS; i++)
        if (all->tasks[i] != NULL)
            sim_task_wake(all->tasks[i]);
}

void uv_cond_signal(uv_cond_t *cond)
{
    uv_cond_broadcast(cond);
}

static void wait_on(uv_cond_t *cond, uv_mutex_t *lock, int64_t until)
{
    waiters *all = (waiters *)(void *)cond;
    int at = 0;

    while (all->tasks[at] != NULL)
        DT_ASSERT(++at < WAITERS);
    all->tasks[at] = sim_running;
    uv_mutex_unlock(lock);
    sim_wait(until);
    all->tasks[at] = NULL;
    uv_mutex_lock(lock);
}

void uv_cond_wait(uv_cond_t *cond, uv_mutex_t *lock)
{
    wait_on(cond, lock, SIM_NEVER);
}

int uv_cond_timedwait(uv_cond_t *cond, uv_mutex_t *lock, uint64_t timeout_ns)
{
    int64_t until = sim_now_ns + (int64_t)timeout_ns;

    wait_on(cond, lock, until);
    return sim_now_ns >= until ? UV_ETIMEDOUT : 0;
}

uv_buf_t uv_buf_init(char *base, unsigned length)
{
    return (uv_buf_t){.base = base, .len = length};
}

const char *uv_strerror(int problem)
{
    return problem == UV_EPIPE ? "broken pipe" : problem == UV_ENOENT ? "no such file" : "failed";
}
