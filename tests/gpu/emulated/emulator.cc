/* The fibers behind the emulated cuda_runtime.h. */
#include <limits.h>
#include <setjmp.h>
#include <ucontext.h>

#include <deque>
#include <memory>
#include <vector>

#include "emulator.h"

#define STACK_BYTES    ((size_t)256 << 10)
#define SHARED_UNASKED ((size_t)48 << 10) /* more must be asked for */
#define SHARED_MOST \
    ((size_t)99 << 10) /* of sm_86 and sm_89, the least of those that we build for */

dt_emulated_place dt_emulated;

namespace
{

enum waiting { RUNS, AT_WARP, AT_BLOCK, ENDED };

/* A fiber begins by its context and is then left and entered by jumps, which cost no system call.
 * It serves one thread after the other, of all blocks. */
struct fiber {
    bool begun;
    ucontext_t first;
    jmp_buf place;
    std::unique_ptr<char[]> stack;
    waiting state;
};

struct warp {
    unsigned char slots[32 * 64];
};

jmp_buf scheduler;
std::deque<fiber> fibers;
std::vector<warp> warps;
unsigned current;
size_t shared_allowed = SHARED_UNASKED;
const std::function<void()> *work;

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
        wait(ENDED);
    }
}

void go_on(unsigned i)
{
    current = i;
    dt_emulated.thread = dim3(i, 0, 0);
    if (_setjmp(scheduler) != 0)
        return;
    if (fibers[i].begun)
        _longjmp(fibers[i].place, 1);
    fibers[i].begun = true;
    setcontext(&fibers[i].first);
}

/* Whether none of the threads first .. last-1 is elsewhere than at `state` or ended. */
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

void release(unsigned first, unsigned last, waiting state)
{
    if (!all_at(first, last, state))
        return;
    for (unsigned i = first; i < last; i++)
        if (fibers[i].state == state)
            fibers[i].state = RUNS;
}

void run_block(unsigned threads)
{
    bool left = true;

    for (unsigned i = 0; i < threads; i++)
        fibers[i].state = RUNS;
    while (left) {
        left = false;
        for (unsigned i = 0; i < threads; i++)
            if (fibers[i].state == RUNS)
                go_on(i);
        for (unsigned first = 0; first < threads; first += 32)
            release(first, first + 32 < threads ? first + 32 : threads, AT_WARP);
        release(0, threads, AT_BLOCK);
        for (unsigned i = 0; i < threads; i++)
            left = left || fibers[i].state == RUNS;
    }
    for (unsigned i = 0; i < threads; i++)
        if (fibers[i].state != ENDED)
            dt_emulated_refuse("threads wait at a barrier that the others never reach");
}

} // namespace

static void run(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &body)
{
    std::vector<unsigned char> shared(shared_bytes + 256);
    uintptr_t start = ((uintptr_t)shared.data() + 127) & ~(uintptr_t)127;
    dt_emulated_open memory;

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
    dt_emulated.dynamic_shared = (unsigned char *)start;
    for (unsigned y = 0; y < grid.y; y++)
        for (unsigned x = 0; x < grid.x; x++) {
            dt_emulated.block = dim3(x, y, 0);
            run_block(block.x);
        }
}

void dt_emulated_launch(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                        std::function<void()> body)
{
    std::lock_guard<std::recursive_mutex> held(dt_emulated_lock);

    if (block.y != 1 || block.z != 1 || grid.z != 1)
        dt_emulated_refuse("blocks of one dimension and grids of two are all that there is here");
    if (grid.x == 0 || grid.x > INT_MAX || grid.y == 0 || grid.y > 65535 || block.x == 0 ||
        block.x > 1024 || shared_bytes > shared_allowed)
        dt_emulated_refuse("a launch that a card would refuse");
    shared_allowed = SHARED_UNASKED;
    dt_emulated_enqueue(stream, [=]() { run(grid, block, shared_bytes, body); });
}

cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int bytes)
{
    if (bytes < 0 || (size_t)bytes > SHARED_MOST)
        return cudaErrorInvalidValue;
    shared_allowed = (size_t)bytes > SHARED_UNASKED ? (size_t)bytes : SHARED_UNASKED;
    return cudaSuccess;
}

void dt_emulated_block_barrier(void)
{
    wait(AT_BLOCK);
}

void dt_emulated_warp_barrier(void)
{
    wait(AT_WARP);
}

unsigned char *dt_emulated_warp_memory(void)
{
    return warps[current / 32].slots;
}
