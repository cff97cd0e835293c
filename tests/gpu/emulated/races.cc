/* Records which thread has read and written which memory, for all accesses of kernels except to
 * their threads' own stacks. The kernels are compiled with -fsanitize=thread, whose calls come here
 * instead of to a library.
 *
 * Every two bytes have a cell with the last write and the reads since. Of two accesses to a cell,
 * one of them a write, one must be before the other: both of one thread, or with a __syncthreads
 * between them in one block, or a __syncwarp in one warp (a shuffle orders no memory). Blocks are
 * never ordered, and each has its own shared memory. No thread may access the destination of an
 * unfinished copy (cp.async).
 */
#include <stdio.h>

#include <unordered_map>
#include <vector>

#include "emulator.h"

#define PAGE_BYTES ((uintptr_t)4096)
#define CELL_BYTES ((uintptr_t)2)
#define NEAR       1024 /* pages that are mapped at once */

namespace
{

enum readers : uint8_t { NOBODY, ONE, LANES, WARPS }; /* the last reader's block and epoch */

struct moment {
    uint32_t block, epoch, warp_epoch;
    uint16_t thread;
};

struct cell {
    uint32_t stamp; /* of another launch, or block for shared memory: no access was recorded here */
    moment wrote, read;
    readers who;
    bool written, elsewhere, under_way; /* read by several blocks; a copy will write it */
    bool landed;                        /* a bulk copy has written it */
};

struct page {
    cell cells[PAGE_BYTES / CELL_BYTES];
};

std::unordered_map<uintptr_t, page *> pages;
std::vector<page *> spare;
uint32_t stamps, launch_stamp, block_stamp;
struct {
    uintptr_t number;
    page *at; /* NULL: none */
} nearby[NEAR];

page *page_of(uintptr_t number)
{
    page *&found = pages[number];

    if (found == NULL && spare.empty()) {
        found = new page();
    } else if (found == NULL) {
        found = spare.back();
        spare.pop_back();
    }
    return found;
}

cell *cell_of(uintptr_t at)
{
    uintptr_t number = at / PAGE_BYTES;
    auto &held = nearby[number % NEAR];

    if (held.at == NULL || held.number != number) {
        held.at = page_of(number);
        held.number = number;
    }
    return &held.at->cells[at % PAGE_BYTES / CELL_BYTES];
}

[[noreturn]] void race(const char *mine, const char *other, const moment &before, const moment &now,
                       uintptr_t at)
{
    char text[256];

    snprintf(text, sizeof(text),
             "a race: thread %u of block %u %s what thread %u of block %u %s, at %p, and nothing "
             "is between them",
             now.thread, now.block, mine, before.thread, before.block, other, (void *)at);
    dt_emulated_refuse(text);
}

bool one_warp(const moment &before, const moment &now)
{
    return before.thread / 32 == now.thread / 32;
}

bool is_before(const moment &before, const moment &now)
{
    if (before.block != now.block)
        return false;
    return before.thread == now.thread || before.epoch < now.epoch ||
           (one_warp(before, now) && before.warp_epoch < now.warp_epoch);
}

/* Returns whether all reads since the last write are ordered before. */
bool all_are_before(const cell &c, const moment &now)
{
    if (c.who == NOBODY)
        return true;
    if (c.elsewhere || c.read.block != now.block)
        return false;
    if (c.read.epoch < now.epoch)
        return true;
    if (c.who == ONE)
        return is_before(c.read, now);
    return c.who == LANES && one_warp(c.read, now) && c.read.warp_epoch < now.warp_epoch;
}

void note_reader(cell *c, const moment &now)
{
    if (c->who == NOBODY || c->read.block != now.block) {
        c->elsewhere = c->who != NOBODY;
        c->who = ONE;
    } else if (c->read.epoch < now.epoch) {
        c->who = ONE;
    } else if (!one_warp(c->read, now)) {
        c->who = WARPS;
    } else if (c->read.thread != now.thread && c->who == ONE) {
        c->who = LANES;
    }
    c->read = now;
}

void touch(cell *c, uint32_t stamp, const moment &now, uintptr_t at, bool writes)
{
    if (c->stamp != stamp) {
        *c = cell();
        c->stamp = stamp;
    }
    if (c->under_way)
        dt_emulated_refuse(
            "memory that a copy is still to write was touched: it was not waited for");
    if (c->written && !is_before(c->wrote, now))
        race(writes ? "writes" : "reads", "has written", c->wrote, now, at);
    if (!writes) {
        note_reader(c, now);
        return;
    }
    if (!all_are_before(*c, now))
        race("writes", "has read", c->read, now, at);
    c->who = NOBODY;
    c->written = true;
    c->wrote = now;
}

void touch_all(const void *memory, size_t bytes, bool writes)
{
    uintptr_t at = (uintptr_t)memory / CELL_BYTES * CELL_BYTES, end = (uintptr_t)memory + bytes;
    moment now;
    uint32_t stamp;

    if (!dt_emulated_watches(memory, bytes))
        return;
    now = {dt_emulated_now.block, dt_emulated_now.epoch, dt_emulated_now.warp_epoch,
           (uint16_t)dt_emulated.thread.x};
    stamp = dt_emulated_is_shared(memory) ? block_stamp : launch_stamp;
    while (at < end) {
        uintptr_t next = (at / PAGE_BYTES + 1) * PAGE_BYTES;

        for (cell *c = cell_of(at); at < end && at < next; c++, at += CELL_BYTES)
            touch(c, stamp, now, at, writes);
    }
}

} // namespace

void dt_emulated_races_begin(void)
{
    for (const auto &entry : pages)
        spare.push_back(entry.second);
    pages.clear();
    memset(nearby, 0, sizeof(nearby));
    launch_stamp = ++stamps;
}

void dt_emulated_races_block(void)
{
    block_stamp = ++stamps;
}

void dt_emulated_read(const void *memory, size_t bytes)
{
    touch_all(memory, bytes, false);
}

void dt_emulated_copy_mark(void *memory, size_t bytes, bool under_way)
{
    for (size_t i = 0; i < bytes && !under_way; i += CELL_BYTES)
        cell_of((uintptr_t)memory + i)->under_way = false;
    touch_all(memory, bytes, true);
    for (size_t i = 0; i < bytes && under_way; i += CELL_BYTES)
        cell_of((uintptr_t)memory + i)->under_way = true;
}

static cell *cell_of_block(uintptr_t at)
{
    cell *c = cell_of(at);

    if (c->stamp != block_stamp) {
        *c = cell();
        c->stamp = block_stamp;
    }
    return c;
}

void dt_emulated_async_mark(void *memory, size_t bytes, bool under_way)
{
    for (size_t i = 0; i < bytes; i += CELL_BYTES) {
        cell *c = cell_of_block((uintptr_t)memory + i);

        if (under_way && c->under_way)
            dt_emulated_refuse("a copy onto memory that another one is still to write");
        c->under_way = under_way;
        c->landed = !under_way;
    }
}

void dt_emulated_async_read(const void *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += CELL_BYTES) {
        const cell *c = cell_of_block((uintptr_t)memory + i);

        if (c->under_way)
            dt_emulated_refuse("memory that a copy is still to write was read by a product: it was "
                               "not waited for");
        if (!c->landed && !c->written)
            dt_emulated_refuse("a product reads memory that nobody has written");
    }
}

/* --- functions that the compiler calls */

#define ACCESS(bytes)                                       \
    extern "C" void __tsan_read##bytes(void *at)            \
    {                                                       \
        touch_all(at, bytes, false);                        \
    }                                                       \
    extern "C" void __tsan_write##bytes(void *at)           \
    {                                                       \
        touch_all(at, bytes, true);                         \
    }                                                       \
    extern "C" void __tsan_unaligned_read##bytes(void *at)  \
    {                                                       \
        touch_all(at, bytes, false);                        \
    }                                                       \
    extern "C" void __tsan_unaligned_write##bytes(void *at) \
    {                                                       \
        touch_all(at, bytes, true);                         \
    }

ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

extern "C" void __tsan_read_range(void *at, unsigned long bytes)
{
    touch_all(at, bytes, false);
}

extern "C" void __tsan_write_range(void *at, unsigned long bytes)
{
    touch_all(at, bytes, true);
}

extern "C" void __tsan_init(void) {}
extern "C" void __tsan_func_entry(void *) {}
extern "C" void __tsan_func_exit(void) {}
extern "C" void __tsan_vptr_update(void **, void *) {}
extern "C" void __tsan_vptr_read(void **) {}
