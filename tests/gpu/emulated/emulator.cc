/* Implements the fibers of the emulated cuda_runtime.h. */
#include <limits.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <deque>
#include <memory>
#include <vector>

#include "emulator.h"
#include "hopper.h"

#define STACK_BYTES    ((size_t)256 << 10)
#define SHARED_UNASKED ((size_t)48 << 10) /* more must be requested */
#define SHARED_MOST    ((size_t)99 << 10) /* of sm_86 and sm_89, the least of all targets */
#define SHARED_HOPPER  ((size_t)227 << 10)

#define WINDOW_BYTES ((size_t)228 << 10) /* in pages */
#define WINDOW_ALIGN ((size_t)256 << 10)
#define GUARD_BYTES  ((size_t)4096)

dt_emulated_place dt_emulated;
struct dt_emulated_now dt_emulated_now;

namespace
{

enum waiting { RUNS, AT_WARP, AT_BLOCK, AT_PHASE, ENDED };

struct copy {
    void *to;
    const void *from;
    bool inside;
};

/* A fiber starts with its context, and is then left and entered by jumps, which need no system
 * call. It runs one thread after the other, of all blocks. */
struct fiber {
    bool begun;
    ucontext_t first;
    jmp_buf place;
    std::unique_ptr<char[]> stack;
    waiting state;
    int line;                /* line of the barrier */
    unsigned mask;           /* lanes of a warp's barrier */
    bool orders;             /* the barrier orders memory as well */
    unsigned exchanges;      /* number so far: two sets of slots are used in turn */
    std::deque<copy> copies; /* copies of groups, then the others */
    std::deque<size_t> groups;
    uintptr_t barrier; /* in shared memory, with the phase that is waited for */
    unsigned parity;
};

struct warp {
    unsigned char slots[2][32 * 64];
    uint32_t epoch;
};

jmp_buf scheduler;
std::deque<fiber> fibers;
std::vector<warp> warps;
unsigned current;
size_t shared_allowed = SHARED_UNASKED;
const std::function<void()> *work;
unsigned char *shared_window; /* followed by a page that faults */
size_t shared_bytes;
bool hopper; /* this block's kernel is for sm_90 */
/* The stack of the running kernel thread; NULL on the host's threads, which may run the ops' own
 * code meanwhile. */
__attribute__((tls_model("initial-exec"))) thread_local const unsigned char *stack;

void make_shared_window()
{
    if (shared_window != NULL)
        return;
    shared_window = (unsigned char *)mmap(NULL, 2 * WINDOW_ALIGN, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (shared_window == MAP_FAILED)
        abort();
    shared_window += WINDOW_ALIGN - (uintptr_t)shared_window % WINDOW_ALIGN;
    if (mprotect(shared_window + WINDOW_BYTES, GUARD_BYTES, PROT_NONE) != 0)
        abort();
}

bool is_shared(const void *at, size_t bytes)
{
    const unsigned char *byte = (const unsigned char *)at, *start = dt_emulated.dynamic_shared;

    return byte >= start && byte + bytes <= start + shared_bytes;
}

void wait(waiting state)
{
    fibers[current].state = state;
    if (_setjmp(fibers[current].place) == 0)
        _longjmp(scheduler, 1);
}

void serve()
{
    for (;;) {
        (*work)();
        if (!fibers[current].copies.empty())
            dt_emulated_refuse("a thread has ended, and copies of it are under way");
        dt_emulated_hopper_ends();
        wait(ENDED);
    }
}

void resume(unsigned i)
{
    current = i;
    dt_emulated.thread = dim3(i, 0, 0);
    dt_emulated_now.warp_epoch = warps[i / 32].epoch;
    stack = (const unsigned char *)fibers[i].stack.get();
    if (_setjmp(scheduler) != 0) {
        stack = NULL;
        return;
    }
    if (fibers[i].begun)
        _longjmp(fibers[i].place, 1);
    fibers[i].begun = true;
    setcontext(&fibers[i].first);
}

/* Returns whether all threads first .. last-1 are in `state` or have ended, and at least one is in it. */
bool all_at(unsigned first, unsigned last, waiting state)
{
    bool any = false;

    for (unsigned i = first; i < last; i++) {
        if (fibers[i].state != state && fibers[i].state != ENDED)
            return false;
        any = any || fibers[i].state == state;
    }
    return any;
}

/* Threads that wait there together must have reached the same line. */
void check_barrier(unsigned first, unsigned last, waiting state)
{
    int line = 0;

    for (unsigned i = first; i < last; i++) {
        if (fibers[i].state != state)
            continue;
        if (line != 0 && fibers[i].line != line)
            dt_emulated_refuse("threads meet at barriers of different lines");
        line = fibers[i].line;
        if (state == AT_WARP && fibers[i].mask != 0xffffffffu)
            dt_emulated_refuse("a mask of less than all lanes is not known here");
    }
    for (unsigned i = first; i < last && state == AT_WARP; i++)
        if (fibers[i].state == ENDED)
            dt_emulated_refuse("a lane that the mask names has ended");
}

void release(unsigned first, unsigned last, waiting state)
{
    if (!all_at(first, last, state))
        return;
    check_barrier(first, last, state);
    if (state == AT_BLOCK)
        dt_emulated_now.epoch++;
    else if (fibers[first].orders)
        warps[first / 32].epoch++;
    for (unsigned i = first; i < last; i++)
        if (fibers[i].state == state)
            fibers[i].state = RUNS;
}

void run_block(unsigned threads)
{
    bool left = true;

    for (unsigned i = 0; i < threads; i++) {
        fibers[i].state = RUNS;
        fibers[i].exchanges = 0;
    }
    for (warp &each : warps)
        each.epoch = 0;
    dt_emulated_now.epoch = 0;
    hopper = false;
    dt_emulated_hopper_block(threads);
    while (left) {
        left = false;
        for (unsigned i = 0; i < threads; i++)
            if (fibers[i].state == RUNS)
                resume(i);
        for (unsigned i = 0; i < threads; i++)
            if (fibers[i].state == AT_PHASE &&
                dt_emulated_barrier_over(fibers[i].barrier, fibers[i].parity))
                fibers[i].state = RUNS;
        for (unsigned first = 0; first < threads; first += 32)
            release(first, first + 32 < threads ? first + 32 : threads, AT_WARP);
        release(0, threads, AT_BLOCK);
        for (unsigned i = 0; i < threads; i++)
            left = left || fibers[i].state == RUNS;
    }
    for (unsigned i = 0; i < threads; i++)
        if (fibers[i].state != ENDED)
            dt_emulated_refuse("threads wait at a barrier that the others never reach");
    if (shared_bytes > SHARED_MOST && !hopper)
        dt_emulated_refuse("more shared memory than a card of sm_86 has, and no kernel for sm_90");
}

} // namespace

static void run(dim3 grid, dim3 block, size_t bytes, const std::function<void()> &body)
{
    dt_emulated_open memory;

    make_shared_window();
    dt_emulated_races_begin();
    dt_emulated_now = {};
    shared_bytes = bytes;
    while (fibers.size() < block.x) {
        fiber made = {};

        made.stack.reset(new char[STACK_BYTES]);
        getcontext(&made.first);
        made.first.uc_stack.ss_sp = made.stack.get();
        made.first.uc_stack.ss_size = STACK_BYTES;
        makecontext(&made.first, serve, 0);
        fibers.push_back(std::move(made));
    }
    warps.resize((block.x + 31) / 32);
    work = &body;
    dt_emulated.block_size = block;
    dt_emulated.grid_size = grid;
    dt_emulated.dynamic_shared =
        shared_window +
        (WINDOW_BYTES - bytes) / 128 * 128; /* the largest alignment that kernels may request */
    for (unsigned y = 0; y < grid.y; y++)
        for (unsigned x = 0; x < grid.x; x++) {
            dt_emulated.block = dim3(x, y, 0);
            dt_emulated_races_block();
            memset(dt_emulated.dynamic_shared, 0xff, bytes); /* NaN until it is written */
            run_block(block.x);
            dt_emulated_now.block++;
        }
}

void dt_emulated_launch(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                        std::function<void()> body)
{
    std::lock_guard<std::recursive_mutex> held(dt_emulated_lock);

    if (block.y != 1 || block.z != 1 || grid.z != 1)
        dt_emulated_refuse("blocks of one dimension and grids of two are all that there is here");
    if (block.x % 32 != 0)
        dt_emulated_refuse("a warp of less than 32 lanes is not known here");
    if (grid.x == 0 || grid.x > INT_MAX || grid.y == 0 || grid.y > 65535 || block.x == 0 ||
        block.x > 1024 || shared_bytes > shared_allowed)
        dt_emulated_refuse("a launch that a card would refuse");
    shared_allowed = SHARED_UNASKED;
    dt_emulated_enqueue(stream, [=]() { run(grid, block, shared_bytes, body); });
}

cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int bytes)
{
    if (bytes < 0 || (size_t)bytes > SHARED_HOPPER)
        return dt_emulated_fail(cudaErrorInvalidValue);
    shared_allowed = (size_t)bytes > SHARED_UNASKED ? (size_t)bytes : SHARED_UNASKED;
    return cudaSuccess;
}

void dt_emulated_block_barrier(int line)
{
    fibers[current].line = line;
    wait(AT_BLOCK);
}

void dt_emulated_barrier_wait(uintptr_t at, unsigned parity)
{
    if (dt_emulated_barrier_over(at, parity))
        return;
    fibers[current].barrier = at;
    fibers[current].parity = parity;
    wait(AT_PHASE);
}

void dt_emulated_let_others(void)
{
    wait(RUNS);
}

void dt_emulated_uses_hopper(void)
{
    hopper = true;
}

uintptr_t dt_emulated_window(void)
{
    return (uintptr_t)shared_window;
}

static void meet(unsigned mask, int line, bool orders)
{
    fibers[current].line = line;
    fibers[current].mask = mask;
    fibers[current].orders = orders;
    wait(AT_WARP);
}

void dt_emulated_warp_barrier(unsigned mask, int line)
{
    meet(mask, line, true);
}

const unsigned char *dt_emulated_exchange_all(const void *mine, size_t bytes, unsigned mask,
                                              int line)
{
    unsigned char *slots = warps[current / 32].slots[fibers[current].exchanges++ % 2];

    memcpy(slots + current % 32 * 64, mine, bytes);
    meet(mask, line, false);
    return slots;
}

/* --- watched memory */

bool dt_emulated_watches(const void *memory, size_t bytes)
{
    const unsigned char *byte = (const unsigned char *)memory;

    if (stack == NULL || (byte >= stack && byte < stack + STACK_BYTES))
        return false;
    if (byte >= (const unsigned char *)&dt_emulated &&
        byte < (const unsigned char *)(&dt_emulated + 1))
        return false;
    if (byte >= shared_window && byte < shared_window + WINDOW_BYTES + GUARD_BYTES &&
        !is_shared(byte, bytes))
        dt_emulated_refuse("shared memory beyond what the launch asked for");
    return true;
}

/* A kernel's own __shared__ variables are static variables, and kernels have no other static
 * variables. */
extern unsigned char __bss_start[] __attribute__((visibility("hidden")));
extern unsigned char _end[] __attribute__((visibility("hidden")));

bool dt_emulated_is_shared(const void *memory)
{
    const unsigned char *byte = (const unsigned char *)memory;

    return (byte >= shared_window && byte < shared_window + WINDOW_BYTES) ||
           (byte >= __bss_start && byte < _end);
}

/* --- copies into shared memory */

void dt_emulated_copy_16(void *shared, const void *from, bool inside)
{
    if ((uintptr_t)shared % 16 != 0 || (uintptr_t)from % 16 != 0)
        dt_emulated_refuse("a copy of 16 bytes from or to where no 16 bytes begin");
    if (!is_shared(shared, 16))
        dt_emulated_refuse("a copy into what is not the launch's shared memory");
    dt_emulated_copy_mark(shared, 16, true);
    fibers[current].copies.push_back({shared, from, inside});
}

void dt_emulated_copy_commit(void)
{
    fiber &mine = fibers[current];
    size_t count = mine.copies.size();

    for (size_t group : mine.groups)
        count -= group;
    mine.groups.push_back(count);
}

void dt_emulated_copy_wait(size_t left)
{
    fiber &mine = fibers[current];

    while (mine.groups.size() > left) {
        for (size_t i = 0; i < mine.groups.front(); i++) {
            copy what = mine.copies.front();

            mine.copies.pop_front();
            dt_emulated_copy_mark(what.to, 16, false);
            if (what.inside)
                memcpy(what.to, what.from, 16);
            else
                memset(what.to, 0, 16);
        }
        mine.groups.pop_front();
    }
}

void dt_emulated_matrix_row(const void *row)
{
    if ((uintptr_t)row % 16 != 0)
        dt_emulated_refuse("a row for ldmatrix that does not begin at 16 bytes");
    if (!is_shared(row, 16))
        dt_emulated_refuse("a row for ldmatrix that is not in the launch's shared memory");
    dt_emulated_read(row, 16);
}
