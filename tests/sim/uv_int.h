/* uv_int: the part of libuv that the programs use, on virtual time.
 *
 *   uv_loop.c   turns, in libuv's order: timers, prepare, input, check, closing
 *   uv_handle.c timers, asyncs, signals ...    uv_pipe.c   pipes and processes
 *   uv_thread.c the pool, threads, locks
 */
#ifndef DT_SIM_UV_INT_H
#define DT_SIM_UV_INT_H

#include <uv.h>

#include "tests/sim/sim.h"

typedef struct sim_handle {
    struct sim_handle *next;
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
    bool sent_end;

    /* process */
    sim_proc *proc;
    uv_exit_cb on_exit;
    int64_t code;
} sim_handle;

typedef struct sim_work {
    struct sim_work *next;
    uv_work_t *uv;
    uv_work_cb run;
    uv_after_work_cb after;
    sim_loop *loop;
    sim_task *task;
    bool begun, over, cancelled;
} sim_work;

typedef struct sim_written {
    struct sim_written *next;
    uv_write_t *uv;
    uv_write_cb done;
    sim_handle *pipe;
    int status;
} sim_written;

struct sim_loop {
    sim_proc *proc;
    sim_task *task; /* the task that runs it */
    sim_handle *handles;
    sim_work *works;
    sim_written *written, **written_last;
    bool stop, waiting;
    int64_t orders;
};

static inline sim_loop *sim_loop_of(const uv_loop_t *loop)
{
    return (sim_loop *)loop->internal_fields;
}

static inline sim_handle *sim_handle_of(const void *uv)
{
    return (sim_handle *)((const uv_handle_t *)uv)->u.reserved[0];
}

/* Makes a new handle of the loop. */
sim_handle *sim_handle_open(uv_loop_t *loop, void *uv, uv_handle_type type);

/* --- uv_pipe.c */
bool sim_pipe_is_ready(const sim_handle *pipe);
void sim_pipe_read(sim_handle *pipe);

#endif
