/* Emulates what sm_90 adds (hopper.h): barriers in shared memory, bulk copies, products of a
 * warpgroup, all as late as possible. A copy arrives when a thread waits for its barrier. A product
 * reads its operands and writes its result when its group is waited for; until then the result is
 * NaN.
 *
 * Refused: barriers without a fence before the copies; bytes that arrive unexpected; a copy to the
 * destination of one in progress, or to operands that a product has not read yet; a product that
 * reads data that have not arrived or were never written, that no fence precedes, or that differs
 * between the four warps; a thread that ends with products in progress.
 */
#include <stdio.h>

#include <deque>
#include <map>
#include <vector>

#include "emulator.h"
#include "hopper.h"

namespace
{

struct landing {
    unsigned char *to;
    dt_tensor_map map; /* the kernel's own may be gone by then */
    int column, head, row, sequence;
    uint32_t bytes;
};

struct barrier {
    unsigned arrivals, awaited; /* arrivals of every phase; still missing in this phase */
    int64_t bytes;              /* not arrived yet */
    unsigned phase;
    bool shown;
    std::deque<landing> under_way;
};

struct product {
    dt_emulated_product what;
    std::vector<float> start; /* old value of the accumulator, for its first product */
};

struct thread_products {
    std::deque<product> queued;
    std::deque<size_t> groups;
    bool fenced;
    size_t given; /* since the block started */
};

std::map<uintptr_t, barrier> barriers; /* of the block */
std::vector<thread_products> threads;
/* The descriptors that the first warp of each warpgroup has given, in order. */
std::vector<std::vector<std::pair<uint64_t, uint64_t>>> given;

barrier &barrier_at(uintptr_t at)
{
    auto found = barriers.find(at);

    if (found == barriers.end())
        dt_emulated_refuse("a barrier that nobody has made");
    return found->second;
}

void pass(barrier *b)
{
    if (b->awaited > 0 || b->bytes != 0)
        return;
    b->phase++;
    b->awaited = b->arrivals;
}

void land(const landing &what)
{
    const dt_tensor_map &map = what.map;

    for (uint32_t r = 0; r < map.box_rows; r++)
        for (uint32_t c = 0; c < 64; c++) {
            uint64_t at[4] = {(uint64_t)(what.column + (int)c), (uint64_t)what.head,
                              (uint64_t)(what.row + (int)r), (uint64_t)what.sequence};
            uintptr_t to = dt_emulated_swizzled((uintptr_t)what.to + r * 128 + c * 2);
            bool inside = true;
            uint64_t offset = at[0] * 2;

            for (int i = 0; i < 4; i++)
                inside = inside && at[i] < map.size[i];
            for (int i = 1; i < 4; i++)
                offset += at[i] * map.stride[i - 1];
            if (inside)
                memcpy((void *)to, map.data + offset, 2);
            else
                memset((void *)to, 0, 2);
        }
}

/* Returns the address of element (n, k) of a matrix: n is a row or column of the result, k the
 * depth. */
uintptr_t element_at(uint64_t matrix, bool deep, int n, int k)
{
    uintptr_t base = dt_emulated_window(), start = (matrix & 0x3fff) << 4;
    uintptr_t panels = (matrix >> 16 & 0x3fff) << 4, eights = (matrix >> 32 & 0x3fff) << 4;

    if (deep)
        start += (uintptr_t)(n / 64) * panels + (uintptr_t)(n % 64) * 2 +
                 (uintptr_t)(k / 8) * eights + (uintptr_t)(k % 8) * 128;
    else
        start += (uintptr_t)(n / 8) * eights + (uintptr_t)(n % 8) * 128 + (uintptr_t)k * 2;
    return dt_emulated_swizzled(base + start);
}

void check_matrix(uint64_t matrix, bool deep, int n)
{
    if (matrix >> 62 != 1 || (matrix >> 46 & 0xffff) != 0)
        dt_emulated_refuse("a matrix that is not swizzled by 128 bytes is not known here");
    for (int i = 0; i < n; i += deep ? 8 : 1)
        for (int k = 0; k < 16; k += deep ? 1 : 8) {
            const void *at = (const void *)element_at(matrix, deep, i, k);

            if (!dt_emulated_is_shared(at))
                dt_emulated_refuse("a product reads what is not shared memory");
            dt_emulated_async_read(at, 16);
        }
}

float value_at(const dt_emulated_product &p, uint64_t matrix, bool deep, int n, int k)
{
    uint16_t bits;

    memcpy(&bits, (const void *)element_at(matrix, deep, n, k), 2);
    return p.value(bits);
}

/* Computes this thread's part: rows lane/4 and lane/4 + 8 of its warp's 16. */
void multiply(const dt_emulated_product &p, float *c)
{
    int lane = (int)threadIdx.x % 32, first = (int)threadIdx.x % 128 / 32 * 16 + lane / 4;
    float left[2][16], right[16];

    for (int half = 0; half < 2; half++)
        for (int k = 0; k < 16; k++)
            left[half][k] = p.in_registers
                                ? p.value((uint16_t)(p.registers[half][k / 2] >> (k % 2 * 16)))
                                : value_at(p, p.left, false, first + half * 8, k);
    for (int i = 0; i < p.n / 8; i++)
        for (int e = 0; e < 2; e++) {
            for (int k = 0; k < 16; k++)
                right[k] = value_at(p, p.right, p.right_deep, i * 8 + lane % 4 * 2 + e, k);
            for (int half = 0; half < 2; half++) {
                float sum = p.adds ? c[i * 4 + half * 2 + e] : 0.0f;

                for (int k = 0; k < 16; k++)
                    sum += left[half][k] * right[k];
                c[i * 4 + half * 2 + e] = sum;
            }
        }
}

bool has(const thread_products &t, const float *c)
{
    for (const product &one : t.queued)
        if (one.what.c == c)
            return true;
    return false;
}

bool reads(const dt_emulated_product &p, const unsigned char *from, size_t bytes)
{
    for (int which = p.in_registers ? 1 : 0; which < 2; which++) {
        bool deep = which != 0 && p.right_deep;
        int n = which == 0 ? 64 : p.n;

        for (int i = 0; i < n; i += deep ? 8 : 1)
            for (int k = 0; k < 16; k += deep ? 1 : 8) {
                auto *at =
                    (const unsigned char *)element_at(which == 0 ? p.left : p.right, deep, i, k);

                if (at >= from && at < from + bytes)
                    return true;
            }
    }
    return false;
}

/* Called by the first thread of every warp: all four must give the same product. */
void check_not_read(const unsigned char *to, size_t bytes)
{
    for (size_t i = 0; i < threads.size(); i += 32)
        for (const product &one : threads[i].queued)
            if (reads(one.what, to, bytes))
                dt_emulated_refuse("a copy onto what a product is still to read");
}

} // namespace

/* --- functions of the driver */

dt_status dt_tensor_map_make(dt_tensor_map *out, const dt_heads_in_memory *x, unsigned box_rows,
                             dt_error *)
{
    if ((uintptr_t)x->data % 16 != 0 || x->width * 2 % 16 != 0 || x->row_stride * 2 % 16 != 0 ||
        x->sequence_stride * 2 % 16 != 0 || box_rows > 256)
        dt_emulated_refuse("a map that the driver would not make");
    *out = {(unsigned char *)(uintptr_t)x->data,
            {(uint64_t)x->width, (uint64_t)x->heads, (uint64_t)x->rows, (uint64_t)x->sequences},
            {(uint64_t)x->width * 2, (uint64_t)x->row_stride * 2, (uint64_t)x->sequence_stride * 2},
            box_rows};
    return DT_OK;
}

/* --- functions for the emulator */

void dt_emulated_hopper_block(unsigned count)
{
    barriers.clear();
    threads.assign(count, thread_products());
    given.assign((count + 127) / 128, {});
}

void dt_emulated_hopper_ends(void)
{
    if (!threads[threadIdx.x].queued.empty())
        dt_emulated_refuse("a thread has ended, and products of it are under way");
}

bool dt_emulated_barrier_over(uintptr_t at, unsigned parity)
{
    barrier &b = barrier_at(at);

    if ((b.phase & 1) != parity)
        return true;
    while (!b.under_way.empty()) {
        landing what = b.under_way.front();

        b.under_way.pop_front();
        dt_emulated_async_mark(what.to, what.bytes, false);
        land(what);
        b.bytes -= what.bytes;
    }
    pass(&b);
    return (b.phase & 1) != parity;
}

/* --- barriers */

void dt_emulated_barrier_make(uintptr_t at, unsigned arrivals)
{
    if (at % 8 != 0 || !dt_emulated_is_shared((const void *)at))
        dt_emulated_refuse("a barrier that is not at 8 bytes of shared memory");
    barriers[at] = {arrivals, arrivals, 0, 0, false, {}};
    dt_emulated_uses_hopper();
}

void dt_emulated_barriers_made(void)
{
    for (auto &each : barriers)
        each.second.shown = true;
}

void dt_emulated_barrier_arrive(uintptr_t at, unsigned bytes)
{
    barrier &b = barrier_at(at);

    if (b.awaited == 0)
        dt_emulated_refuse("more arrive at a barrier than it was made for");
    b.awaited--;
    b.bytes += bytes;
    pass(&b);
    if (bytes == 0)
        dt_emulated_let_others(); /* threads that have waited for this may continue first */
}

void dt_emulated_bulk_load(uintptr_t to, const dt_tensor_map *map, uintptr_t at, int column,
                           int head, int row, int sequence)
{
    barrier &b = barrier_at(at);
    uint32_t bytes = map->box_rows * 128;
    int64_t all = 0;

    if (!b.shown)
        dt_emulated_refuse("a copy by a barrier that no fence has shown to it");
    if (to % 128 != 0 || !dt_emulated_is_shared((const void *)(to + bytes - 1)))
        dt_emulated_refuse("a bulk copy that does not go to 128 bytes of shared memory");
    check_not_read((const unsigned char *)to, bytes);
    dt_emulated_async_mark((void *)to, bytes, true);
    b.under_way.push_back({(unsigned char *)to, *map, column, head, row, sequence, bytes});
    for (const landing &other : b.under_way)
        all += other.bytes;
    if (b.bytes < all)
        dt_emulated_refuse("a bulk copy brings more than its barrier expects");
}

/* --- products */

void dt_emulated_wgmma_fence(void)
{
    threads[threadIdx.x].fenced = true;
}

void dt_emulated_wgmma(const dt_emulated_product &what)
{
    thread_products &t = threads[threadIdx.x];
    auto &order = given[threadIdx.x / 128];
    std::pair<uint64_t, uint64_t> named(what.in_registers ? 0 : what.left, what.right);
    product one = {what, {}};

    if (!t.fenced)
        dt_emulated_refuse("a product that no fence divides from what used its registers before");
    if (t.given == order.size())
        order.push_back(named);
    if (order[t.given++] != named)
        dt_emulated_refuse("threads of a warpgroup give different products");
    if (!has(t, what.c)) {
        one.start.assign(what.c, what.c + what.n / 2);
        for (int i = 0; i < what.n / 2; i++)
            what.c[i] = NAN;
    }
    t.queued.push_back(one);
}

void dt_emulated_wgmma_commit(void)
{
    thread_products &t = threads[threadIdx.x];
    size_t count = t.queued.size();

    for (size_t group : t.groups)
        count -= group;
    t.groups.push_back(count);
}

void dt_emulated_wgmma_wait(size_t left)
{
    thread_products &t = threads[threadIdx.x];

    while (t.groups.size() > left) {
        for (size_t i = 0; i < t.groups.front(); i++) {
            product one = std::move(t.queued.front());
            product *then = NULL;

            t.queued.pop_front();
            if (threadIdx.x % 32 == 0) {
                if (!one.what.in_registers)
                    check_matrix(one.what.left, false, 64);
                check_matrix(one.what.right, one.what.right_deep, one.what.n);
            }
            multiply(one.what, one.start.data());
            for (product &other : t.queued)
                if (then == NULL && other.what.c == one.what.c)
                    then = &other;
            if (then != NULL)
                then->start = std::move(one.start);
            else
                memcpy(one.what.c, one.start.data(), one.start.size() * sizeof(float));
        }
        t.groups.pop_front();
    }
    t.fenced = false;
}
