/* hopper: wraps instructions that only sm_90a has, and instructions of sm_90 that they need (PTX ISA 8.0 and
 * newer): warpgroup products (wgmma), bulk copies of boxes of tensors into shared memory (TMA), and barriers in
 * shared memory that count arrivals (mbarrier).
 *
 * Panels     a matrix in shared memory consists of panels: rows of 64 elements of 16 bits, 128 bytes, starting at
 *            multiples of 1,024 bytes. Chunks of 16 bytes are swizzled, as bulk copies write and wgmma reads them:
 *            bits 4 to 6 of an address are xored with bits 7 to 9
 * wgmma      128 threads, 4 warps from a multiple of 4 on, execute the same instruction. c is 64 x N: of each 8
 *            columns, lane l of warp w holds columns 2(l%4) and +1 of rows 16w + l/4 (elements 0, 1) and 8 further
 *            down (2, 3). From the first instruction until its group has been waited for, c must not be read or
 *            written; if c was accessed otherwise, a fence must precede the next instruction
 * Barriers   a phase ends when the number of arrivals set at creation is reached, and all expected bytes have come.
 *            Phases have parities 0, 1, 0 ...; waiting for parity 1 of a new barrier returns at once
 */
#ifndef DT_ENGINE_OPS_CUDA_HOPPER_CUH
#define DT_ENGINE_OPS_CUDA_HOPPER_CUH

#include "engine/ops/cuda/hopper_map.cuh"
#include "engine/ops/cuda/ptx.cuh"

/* --- barriers: 8 bytes, aligned to 8 */

/* Creates a barrier. Called by one thread, which then calls dt_barriers_made(); a barrier of the
 * block must follow. */
__device__ inline void dt_barrier_make(dt_shared barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

__device__ inline void dt_barriers_made()
{
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\n" ::
                     : "memory");
}

__device__ inline void dt_barrier_arrive(dt_shared barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}

/* Like dt_barrier_arrive, but only after x, which is never negative, has been computed. The
 * assembler may move a wait for products before arithmetic that should overlap with them, but not
 * before an arrival. */
__device__ inline void dt_barrier_arrive_after(dt_shared barrier, float x)
{
    asm volatile("{\n.reg .pred p;\nsetp.geu.f32 p, %1, 0f00000000;\n"
                 "@p mbarrier.arrive.shared::cta.b64 _, [%0];\n}\n" ::"r"(barrier),
                 "f"(x)
                 : "memory");
}

/* Arrives, and makes the phase also wait for this many bytes of bulk copies. */
__device__ inline void dt_barrier_expect(dt_shared barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier),
                 "r"(bytes)
                 : "memory");
}

/* Waits until the phase of this parity is over. If patience is not 0, the wait ends after that many
 * tries of a microsecond at most, regardless of the barrier, and later waits do not wait at all: a
 * caller that sets it must check the results. */
__device__ inline void dt_barrier_wait(dt_shared barrier, unsigned parity, unsigned &patience)
{
    unsigned over, tries = 0;

    do {
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, 1000;\n"
                     "selp.b32 %0, 1, 0, p;\n}\n"
                     : "=r"(over)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!over && ++tries != patience);
    if (!over)
        patience = 1;
}

/* --- bulk copies */

/* Queues the copy of the box that starts at element `column` of row `row` of head `head` of a
 * sequence. Elements outside the tensor become zero, and count as bytes that arrive. Called by one
 * thread. */
__device__ inline void dt_bulk_load(dt_shared to, const dt_tensor_map *map, dt_shared barrier,
                                    int column, int head, int row, int sequence)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%3, %4, %5, %6}], [%2];\n" ::"r"(to),
        "l"(map), "r"(barrier), "r"(column), "r"(head), "r"(row), "r"(sequence)
        : "memory");
}

/* --- registers, moved between warpgroups: each warpgroup calls one of these once, with
 * constants */

template <int COUNT> __device__ inline void dt_registers_fewer()
{
    static_assert(COUNT % 8 == 0 && COUNT >= 24 && COUNT <= 256, "as setmaxnreg wants it");
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(COUNT));
}

template <int COUNT> __device__ inline void dt_registers_more()
{
    static_assert(COUNT % 8 == 0 && COUNT >= 24 && COUNT <= 256, "as setmaxnreg wants it");
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(COUNT));
}

/* --- warpgroup products */

/* Returns the descriptor of a matrix in panels. panels_apart: bytes from one panel to the next,
 * used if a product reads more than one panel (64 elements) along the rows. Swizzled by 128 bytes,
 * 8 rows are 1,024 bytes apart. */
__device__ inline uint64_t dt_matrix(dt_shared start, unsigned panels_apart)
{
    return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)(panels_apart >> 4 & 0x3fff) << 16 | (start >> 4 & 0x3fff);
}

/* Returns the descriptor of the matrix that starts `bytes` bytes further on; a multiple of 16. */
__device__ inline uint64_t dt_matrix_from(uint64_t matrix, unsigned bytes)
{
    return matrix + (bytes >> 4);
}

__device__ inline void dt_wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}

__device__ inline void dt_wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}

/* Waits until at most `LEFT` of the committed groups are still running. */
template <int LEFT> __device__ inline void dt_wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(LEFT) : "memory");
}

#define DT_FOUR(c, i) "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
#define DT_32(c, i)                                                                            \
    DT_FOUR(c, i), DT_FOUR(c, i + 1), DT_FOUR(c, i + 2), DT_FOUR(c, i + 3), DT_FOUR(c, i + 4), \
        DT_FOUR(c, i + 5), DT_FOUR(c, i + 6), DT_FOUR(c, i + 7)
#define DT_NAMES_32                                                                               \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%" \
    "25,%26,%27,%28,%29,%30,%31"
#define DT_NAMES_64                                                                                \
    DT_NAMES_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51" \
                ",%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"

/* c (64 x N) += left (64 x 16) right (16 x N); without ADD: =. Left and right are in shared memory.
 * Their rows hold the elements along the depth; with RIGHT_DEEP, right has 16 rows along the depth,
 * which hold the result's columns. */
#define DT_WGMMA_SHARED(type, name, n, names, after, outputs)                                 \
    template <bool ADD, bool RIGHT_DEEP>                                                      \
    __device__ inline void dt_wgmma(float(&c)[n / 8][4], uint64_t left, uint64_t right, type) \
    {                                                                                         \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " after(                               \
                         2) ", 0;\n"                                                          \
                            "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name   \
                            " {" names                                                        \
                            "}, " after(0) ", " after(1) ", p, 1, 1, 0, " after(3) ";\n}\n"   \
                     : outputs                                                                \
                     : "l"(left), "l"(right), "n"((int)ADD), "n"((int)RIGHT_DEEP));           \
    }
/* The same, with left in registers, as dt_frag_of() makes them. */
#define DT_WGMMA_REGISTERS(type, name, n, names, after, outputs)                                   \
    template <bool ADD, bool RIGHT_DEEP>                                                           \
    __device__ inline void dt_wgmma(float(&c)[n / 8][4], const dt_frag &left, uint64_t right,      \
                                    type)                                                          \
    {                                                                                              \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " after(                                    \
                         5) ", 0;\n"                                                               \
                            "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name        \
                            " {" names "}, {" after(0) "," after(1) "," after(2) "," after(        \
                                3) "}, " after(4) ", p, 1, 1, " after(6) ";\n}\n"                  \
                     : outputs                                                                     \
                     : "r"(left.r[0]), "r"(left.r[1]), "r"(left.r[2]), "r"(left.r[3]), "l"(right), \
                       "n"((int)ADD), "n"((int)RIGHT_DEEP));                                       \
    }
/* Names of the operands that follow 32 and 64 accumulators. */
#define DT_BEHIND_32(i) DT_BEHIND_32_##i
#define DT_BEHIND_32_0  "%32"
#define DT_BEHIND_32_1  "%33"
#define DT_BEHIND_32_2  "%34"
#define DT_BEHIND_32_3  "%35"
#define DT_BEHIND_32_4  "%36"
#define DT_BEHIND_32_5  "%37"
#define DT_BEHIND_32_6  "%38"
#define DT_BEHIND_64(i) DT_BEHIND_64_##i
#define DT_BEHIND_64_0  "%64"
#define DT_BEHIND_64_1  "%65"
#define DT_BEHIND_64_2  "%66"
#define DT_BEHIND_64_3  "%67"
#define DT_BEHIND_64_4  "%68"
#define DT_BEHIND_64_5  "%69"
#define DT_BEHIND_64_6  "%70"
#define DT_COMMA        ,
#define DT_WGMMA(type, name)                                                                      \
    DT_WGMMA_SHARED(type, name, 64, DT_NAMES_32, DT_BEHIND_32, DT_32(c, 0))                       \
    DT_WGMMA_SHARED(type, name, 128, DT_NAMES_64, DT_BEHIND_64, DT_32(c, 0) DT_COMMA DT_32(c, 8)) \
    DT_WGMMA_REGISTERS(type, name, 64, DT_NAMES_32, DT_BEHIND_32, DT_32(c, 0))                    \
    DT_WGMMA_REGISTERS(type, name, 128, DT_NAMES_64, DT_BEHIND_64, DT_32(c, 0) DT_COMMA DT_32(c, 8))

DT_WGMMA(__nv_bfloat16, "bf16")
DT_WGMMA(__half, "f16")

#endif
