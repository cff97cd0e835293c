/* uv_thread: runs threads and the thread pool as tasks of one process, one at a time; and their locks. */
#include <string.h>

#include "tests/sim/uv_int.h"

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
    sim_work *one = context;

    one->begun = true;
    if (!one->cancelled)
        one->run(one->uv);
    one->over = true;
    sim_loop_wake(one->loop);
}

int uv_queue_work(uv_loop_t *loop, uv_work_t *uv, uv_work_cb run, uv_after_work_cb after)
{
    sim_work *one = sim_alloc(sizeof(*one));

    one->uv = uv;
    one->run = run;
    one->after = after;
    one->loop = sim_loop_of(loop);
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
    sim_work *one = ((uv_work_t *)request)->work_req.wq[0];

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
    const thread *one = (const thread *)*uv; /* NOLINT: uv_thread_create stored it there */

    while (!sim_task_is_over(one->task))
        sim_wait(sim_now_ns + SIM_MS);
    return 0;
}

/* A lock is a word. Waiting for a held lock polls it every microsecond. */
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

/* A condition holds its waiters; spurious wake-ups are allowed. */
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
