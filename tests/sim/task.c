/* task: schedules tasks on virtual time, and draws random numbers.
 *
 * A task has its own stack and runs until it waits. Ready tasks run in random order; when none is ready, time jumps to
 * the next event. Nothing here depends on the machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "tests/sim/sim.h"

enum { STACK_BYTES = 512 << 10, STACKS_KEPT = 256 };

struct sim_event {
    int64_t when_ns, number;
    sim_fn *fn; /* NULL: cancelled */
    void *context;
};

struct sim_task {
    sim_proc *proc;
    sim_fn *fn;
    void *context;
    char *stack;
    jmp_buf at;
    bool begun, ready, queued, held, dropped, over;
    sim_event *timer;
};

int64_t sim_now_ns;
sim_task *sim_running;

static struct {
    uint64_t state;
    sim_event **heap;
    size_t count, capacity;
    int64_t numbers, turns_left;
    sim_task *ready[4096];
    int ready_count;
    char *stacks[STACKS_KEPT];
    int stack_count;
    jmp_buf back;
} world;

/* --- randomness */

void sim_world_begin(uint64_t seed, int64_t turns)
{
    world.state = seed * 0x9e3779b97f4a7c15u + 0x1234567;
    world.count = 0;
    world.numbers = 0;
    world.ready_count = 0;
    world.turns_left = turns;
    sim_now_ns = SIM_BEGIN_NS;
    sim_running = NULL;
}

char *sim_print(const char *fmt, ...)
{
    char text[2048], *printed;
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    printed = sim_alloc(strlen(text) + 1);
    memcpy(printed, text, strlen(text));
    return printed;
}

/* splitmix64 */
uint64_t sim_draw(void)
{
    uint64_t z = world.state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t sim_between(int64_t low, int64_t high)
{
    return high <= low ? low : low + (int64_t)(sim_draw() % (uint64_t)(high - low + 1));
}

bool sim_chance(double probability)
{
    return (double)(sim_draw() >> 11) * 0x1p-53 < probability;
}

/* --- events: a heap by time, then by number */

static bool is_before(const sim_event *a, const sim_event *b)
{
    return a->when_ns != b->when_ns ? a->when_ns < b->when_ns : a->number < b->number;
}

sim_event *sim_at(int64_t when_ns, sim_fn *fn, void *context)
{
    sim_event *event = sim_alloc(sizeof(*event));
    size_t at = world.count++;

    *event = (sim_event){when_ns > sim_now_ns ? when_ns : sim_now_ns, world.numbers++, fn, context};
    if (world.count > world.capacity) {
        world.capacity = world.capacity > 0 ? 2 * world.capacity : 1024;
        world.heap = sim_keep(world.heap, world.capacity * sizeof(world.heap[0]));
    }
    for (; at > 0 && is_before(event, world.heap[(at - 1) / 2]); at = (at - 1) / 2)
        world.heap[at] = world.heap[(at - 1) / 2];
    world.heap[at] = event;
    return event;
}

void sim_cancel(sim_event *event)
{
    if (event != NULL)
        event->fn = NULL;
}

static sim_event *take_first(void)
{
    sim_event *first = world.heap[0], *last = world.heap[--world.count];
    size_t at = 0, below;

    while ((below = 2 * at + 1) < world.count) {
        if (below + 1 < world.count && is_before(world.heap[below + 1], world.heap[below]))
            below++;
        if (!is_before(world.heap[below], last))
            break;
        world.heap[at] = world.heap[below];
        at = below;
    }
    world.heap[at] = last;
    return first;
}

/* --- tasks */

static void begin_task(void)
{
    sim_task *task = sim_running;

    task->fn(task->context);
    task->over = true;
    _longjmp(world.back, 1);
}

static void take_stack(sim_task *task)
{
    task->stack =
        world.stack_count > 0 ? world.stacks[--world.stack_count] : sim_keep(NULL, STACK_BYTES);
}

static void give_stack(sim_task *task)
{
    if (task->stack != NULL && world.stack_count < STACKS_KEPT)
        world.stacks[world.stack_count++] = task->stack;
    else
        free(task->stack);
    task->stack = NULL;
}

static void switch_to(sim_task *task)
{
    ucontext_t first;

    sim_running = task;
    if (_setjmp(world.back) == 0) {
        if (task->begun)
            _longjmp(task->at, 1);
        task->begun = true;
        getcontext(&first);
        first.uc_stack.ss_sp = task->stack;
        first.uc_stack.ss_size = STACK_BYTES;
        first.uc_link = NULL;
        makecontext(&first, begin_task, 0);
        setcontext(&first);
    }
    sim_running = NULL;
    if (task->over || task->dropped)
        give_stack(task);
}

void sim_task_wake(sim_task *task)
{
    if (task == NULL || task->over || task->dropped)
        return;
    task->ready = true;
    if (task->held || task->queued)
        return;
    task->queued = true;
    DT_ASSERT(world.ready_count < (int)(sizeof(world.ready) / sizeof(world.ready[0])));
    world.ready[world.ready_count++] = task;
}

void sim_task_hold(sim_task *task, bool hold)
{
    task->held = hold;
    if (!hold && task->ready)
        sim_task_wake(task);
}

sim_task *sim_task_start(sim_proc *proc, sim_fn *fn, void *context)
{
    sim_task *task = sim_alloc(sizeof(*task));

    task->proc = proc;
    task->fn = fn;
    task->context = context;
    take_stack(task);
    sim_task_wake(task);
    return task;
}

void sim_task_drop(sim_task *task)
{
    if (task->over || task->dropped)
        return;
    task->dropped = true;
    sim_cancel(task->timer);
    if (task == sim_running)
        _longjmp(world.back, 1);
    give_stack(task);
}

bool sim_task_is_over(const sim_task *task)
{
    return task->over || task->dropped;
}

static void on_time(void *context)
{
    sim_task *task = context;

    task->timer = NULL;
    sim_task_wake(task);
}

void sim_wait(int64_t until_ns)
{
    sim_task *task = sim_running;

    DT_ASSERT(task != NULL);
    task->ready = false;
    if (until_ns != SIM_NEVER)
        task->timer = sim_at(until_ns, on_time, task);
    if (_setjmp(task->at) == 0)
        _longjmp(world.back, 1);
    sim_cancel(task->timer);
    task->timer = NULL;
}

void sim_sleep(int64_t ns)
{
    int64_t until = sim_now_ns + ns;

    while (sim_now_ns < until)
        sim_wait(until);
}

sim_proc *sim_self(void)
{
    return sim_running != NULL ? sim_running->proc : NULL;
}

/* Counts one turn: an event, or a task that runs until it waits. Returns false if no turns are left. */
static bool take_turn(void)
{
    return world.turns_left > 0 && world.turns_left-- > 0;
}

int64_t sim_turns_left(void)
{
    return world.turns_left;
}

static void run_ready(void)
{
    while (world.ready_count > 0 && take_turn()) {
        int which = world.ready_count > 1 ? (int)(sim_draw() % (uint64_t)world.ready_count) : 0;
        sim_task *task = world.ready[which];

        world.ready[which] = world.ready[--world.ready_count];
        task->queued = false;
        if (task->ready && !task->held && !task->over && !task->dropped)
            switch_to(task);
    }
}

void sim_run_until(int64_t when_ns, bool (*over)(void))
{
    run_ready();
    while (world.count > 0 && world.heap[0]->when_ns <= when_ns && (over == NULL || !over()) &&
           take_turn()) {
        sim_event *event = take_first();

        if (event->fn == NULL)
            continue;
        sim_now_ns = event->when_ns;
        event->fn(event->context);
        run_ready();
    }
    if (world.count == 0 || world.heap[0]->when_ns > when_ns)
        sim_now_ns = when_ns > sim_now_ns ? when_ns : sim_now_ns;
}
