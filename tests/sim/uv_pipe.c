/* uv_pipe: simulates pipes, and the processes at their other ends. */
#include <string.h>
#include <sys/wait.h>

#include "tests/sim/uv_int.h"

static sim_end *end_of(const sim_handle *pipe)
{
    return sim_fd_end(pipe->loop->proc, pipe->fd);
}

bool sim_pipe_is_ready(const sim_handle *pipe)
{
    const sim_end *end = end_of(pipe);

    return end != NULL && pipe->read != NULL &&
           (sim_end_waiting(end) > 0 || (end->eof && !pipe->sent_end));
}

void sim_pipe_read(sim_handle *pipe)
{
    sim_end *end = end_of(pipe);
    uv_buf_t buf;
    size_t got;

    if (sim_end_waiting(end) == 0) {
        buf = uv_buf_init(NULL, 0);
        pipe->sent_end = true;
        pipe->read((uv_stream_t *)pipe->uv, UV_EOF, &buf);
        return;
    }
    pipe->alloc(pipe->uv, 65536, &buf);
    got = sim_end_read(end, buf.base, buf.len);
    pipe->read((uv_stream_t *)pipe->uv, (ssize_t)got, &buf);
}

int uv_pipe_init(uv_loop_t *loop, uv_pipe_t *uv, int ipc)
{
    sim_handle_open(loop, uv, UV_NAMED_PIPE);
    return 0;
}

int uv_pipe_open(uv_pipe_t *uv, uv_file fd)
{
    sim_handle *pipe = sim_handle_of(uv);
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
    sim_handle *pipe = sim_handle_of(uv);

    pipe->alloc = alloc;
    pipe->read = call;
    pipe->active = true;
    sim_loop_wake(pipe->loop);
    return 0;
}

int uv_read_stop(uv_stream_t *uv)
{
    sim_handle_of(uv)->active = false;
    return 0;
}

int uv_write(uv_write_t *request, uv_stream_t *uv, const uv_buf_t bufs[], unsigned count,
             uv_write_cb done)
{
    sim_handle *pipe = sim_handle_of(uv);
    sim_end *end = end_of(pipe);
    sim_written *one = sim_alloc(sizeof(*one));

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
    *fd = sim_handle_of(uv)->fd;
    return *fd >= 0 ? 0 : UV_EBADF;
}

uv_buf_t uv_buf_init(char *base, unsigned length)
{
    return (uv_buf_t){.base = base, .len = length};
}

const char *uv_strerror(int problem)
{
    return problem == UV_EPIPE ? "broken pipe" : problem == UV_ENOENT ? "no such file" : "failed";
}

/* --- processes: a supervisor only spawns connections to nodes (net.c) */

static void on_ended(sim_proc *proc, void *context)
{
    sim_handle *process = context;

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
    sim_handle *process = sim_handle_open(loop, uv, UV_PROCESS);

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
    sim_handle *process = sim_handle_of(uv);

    if (process->proc == NULL)
        return UV_ESRCH;
    sim_proc_signal(process->proc, number);
    return 0;
}
