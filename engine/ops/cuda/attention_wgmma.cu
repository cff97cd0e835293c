/* attention_wgmma: computes the forward pass of attention on H100 and H200 with warpgroup products.
 *
 * A block has one warpgroup that loads tiles of keys and values by bulk copies into two alternating buffers, and
 * two warpgroups that compute, each 64 rows of queries against tiles of 128 keys:
 *   S(j) = Q K(j)^T is queued, then O += P(j-1) V(j-1). While the latter runs, the maximum, the exponentials and
 *   the sum of S(j) are computed; then O is scaled, and P(j) is rounded to the type
 * Tiles that some of the 64 queries do not see completely come last, in a loop of their own: only there are
 * scores masked. Each buffer has two barriers:
 *   filled   the bytes of the tile have arrived (signalled by the copies)
 *   free     every computing warp has read the tile, even if it did not need it
 * Sums have one owner and a fixed order. FLOPs 4 B H T^2 D; causal, half of that
 */
#include <type_traits>

#include "engine/ops/cuda/attention_int.cuh"
#include "engine/ops/cuda/hopper.cuh"

#define DT_GROUP      128 /* threads per warpgroup */
#define DT_GROUP_ROWS 64  /* rows of a warpgroup product */
#define DT_PANEL      64  /* elements per row of a panel */
#define DT_PANEL_ROW  128 /* bytes per row of a panel */
#define DT_SWIZZLED   1024u

/* Set when compiling for sm_90a, and for the emulated GPU of the tests. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(DT_EMULATED_CUDA_RUNTIME_H)
#define DT_HAS_WGMMA 1
#else
#define DT_HAS_WGMMA 0
#endif

__device__ inline dt_shared dt_swizzled_at(const void *memory)
{
    return (dt_shared_at(memory) + (DT_SWIZZLED - 1)) & ~(dt_shared)(DT_SWIZZLED - 1);
}

/* Returns this thread's warpgroup within the block, in a form that lets the compiler know that it
 * is the same for the whole warp. */
__device__ inline int dt_group()
{
    return __shfl_sync(0xffffffffu, (int)threadIdx.x / DT_GROUP, 0);
}

/* For buffers that are filled and used in rotation: dt_stage returns the buffer of the n-th tile,
 * dt_parity the parity of the barrier phase in which that tile fills it. */
template <int STAGES> __device__ inline int dt_stage(int n)
{
    return n % STAGES;
}
template <int STAGES> __device__ inline unsigned dt_parity(int n)
{
    return (unsigned)(n / STAGES) & 1;
}

#define LOG2_E 1.4426950408889634f
#define LN_2   0.6931471805599453f
#define KEYS   128 /* keys per tile */
#define COLS   (KEYS / 8)
#define STAGES 2

namespace
{

/* Warpgroups that compute, and registers per thread: (24 + 2 x 240) x 128 of the 65,536 per block.
 * With a third one for heads of 64, each thread would have 160 registers, and the masked loop would
 * spill. */
#define GROUPS   2
#define BRINGS   24
#define COMPUTES 240

/* The layout of shared memory: byte offsets from its first multiple of 1,024. */
template <int D> struct layout {
    static constexpr int ROWS = GROUPS * DT_GROUP_ROWS;
    static constexpr unsigned OWN = DT_GROUP_ROWS * D * 2, TILE = KEYS * D * 2;
    static constexpr unsigned Q = 0, K = Q + GROUPS * OWN, V = K + STAGES * TILE;
    static constexpr unsigned BARRIERS = V + STAGES * TILE;
    /* the barrier of the queries, then `filled` and `free` for each buffer of keys, then of
     * values */
    static constexpr unsigned K_FILLED = BARRIERS + 8, K_FREE = K_FILLED + 8 * STAGES,
                              V_FILLED = K_FREE + 8 * STAGES, V_FREE = V_FILLED + 8 * STAGES;
    static constexpr unsigned BYTES = V_FREE + 8 * STAGES + DT_SWIZZLED;
};

struct maps {
    dt_tensor_map q, k, v;
};

/* Returns the last key that a query sees. Positions fit an int (wgmma_has() in
 * attention_own.cu). */
__device__ inline int last_key(const dt_attention &a, int query)
{
    int keys = (int)a.keys;

    return a.mask == DT_MASK_FULL ? keys - 1 : query + keys - (int)a.queries;
}

/* Returns the number of tiles with keys that at least one of `rows` queries from `first` on
 * sees. */
__device__ inline int tiles_seen(const dt_attention &a, int first, int rows)
{
    int queries = (int)a.queries, keys = (int)a.keys;
    int key = last_key(a, (first + rows < queries ? first + rows : queries) - 1);

    return (key < keys ? key : keys - 1) / KEYS + 1;
}

/* --- loading */

template <int D>
__device__ inline void bring_tile(dt_shared to, const dt_tensor_map *map, dt_shared filled,
                                  int head, int row, int sequence)
{
    dt_barrier_expect(filled, layout<D>::TILE);
#pragma unroll
    for (int panel = 0; panel < D / DT_PANEL; panel++)
        dt_bulk_load(to + (unsigned)(panel * KEYS * DT_PANEL_ROW), map, filled, panel * DT_PANEL,
                     head, row, sequence);
}

template <int D>
__device__ inline void bring(const dt_attention &a, const maps &from, dt_shared at, int bh,
                             int first, unsigned patience)
{
    typedef layout<D> to;
    int heads = (int)a.heads, head = bh % heads, of_keys = head / (int)a.group,
        sequence = bh / heads;
    int count = tiles_seen(a, first, to::ROWS);

    dt_barrier_expect(at + to::BARRIERS, GROUPS * to::OWN);
    for (int part = 0; part < GROUPS; part++)
        for (int panel = 0; panel < D / DT_PANEL; panel++)
            dt_bulk_load(at + to::Q + (unsigned)part * to::OWN +
                             (unsigned)(panel * DT_GROUP_ROWS * DT_PANEL_ROW),
                         &from.q, at + to::BARRIERS, panel * DT_PANEL, head,
                         first + part * DT_GROUP_ROWS, sequence);
    for (int j = 0; j < count; j++) {
        unsigned stage = (unsigned)dt_stage<STAGES>(j), before = dt_parity<STAGES>(j) ^ 1;

        dt_barrier_wait(at + to::K_FREE + 8 * stage, before, patience);
        bring_tile<D>(at + to::K + stage * to::TILE, &from.k, at + to::K_FILLED + 8 * stage,
                      of_keys, j * KEYS, sequence);
        dt_barrier_wait(at + to::V_FREE + 8 * stage, before, patience);
        bring_tile<D>(at + to::V + stage * to::TILE, &from.v, at + to::V_FILLED + 8 * stage,
                      of_keys, j * KEYS, sequence);
    }
}

/* --- computing */

/* Queues s = Q K^T; q and k: start of the warpgroup's queries and of the tile. */
template <typename T, int D>
__device__ inline void queue_scores(float (&s)[COLS][4], uint64_t q, uint64_t k)
{
#pragma unroll
    for (int depth = 0; depth < D; depth += 16) {
        unsigned along = (unsigned)(depth % DT_PANEL * 2), panel = (unsigned)(depth / DT_PANEL);
        uint64_t left = dt_matrix_from(q, panel * DT_GROUP_ROWS * DT_PANEL_ROW + along);
        uint64_t right = dt_matrix_from(k, panel * KEYS * DT_PANEL_ROW + along);

        if (depth == 0)
            dt_wgmma<false, false>(s, left, right, T());
        else
            dt_wgmma<true, false>(s, left, right, T());
    }
    dt_wgmma_commit();
}

/* Queues out += P V. */
template <typename T, int D>
__device__ inline void queue_values(float (&out)[D / 8][4], const dt_frag (&p)[KEYS / 16],
                                    uint64_t v)
{
#pragma unroll
    for (int i = 0; i < KEYS / 16; i++)
        dt_wgmma<true, true>(out, p[i], dt_matrix_from(v, (unsigned)(i * 16 * DT_PANEL_ROW)), T());
    dt_wgmma_commit();
}

/* Sets the scores of keys that the lane's two query rows do not see to minus infinity; `seen` is
 * the last visible key of each row, within the tile. */
__device__ inline void hide_keys(float (&s)[COLS][4], const int (&seen)[2])
{
    int at = (int)threadIdx.x % 4 * 2;

#pragma unroll
    for (int i = 0; i < COLS; i++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (i * 8 + at + e % 2 > seen[e / 2])
                s[i][e] = -INFINITY;
}

/* For the lane's two rows: turns scores into weights, updates max and total, and sets `shrink`, the
 * factor for the output summed so far. */
__device__ inline void weigh(float (&s)[COLS][4], float (&max)[2], float (&total)[2],
                             float (&shrink)[2], float scale)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float top = max[half], shift;

#pragma unroll
        for (int i = 0; i < COLS; i++)
            top = fmaxf(top, fmaxf(s[i][half * 2], s[i][half * 2 + 1]));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
        shrink[half] = dt_exp2((max[half] - top) * scale);
        shift = top * scale;
        max[half] = top;
        total[half] *= shrink[half];
#pragma unroll
        for (int i = 0; i < COLS; i++)
#pragma unroll
            for (int e = half * 2; e < half * 2 + 2; e++) {
                s[i][e] = dt_exp2(fmaf(s[i][e], scale, -shift));
                total[half] += s[i][e];
            }
    }
}

template <typename T>
__device__ inline void round_weights(dt_frag (&p)[KEYS / 16], const float (&s)[COLS][4])
{
#pragma unroll
    for (int i = 0; i < KEYS / 16; i++)
        p[i] = dt_frag_of<T>(s[2 * i], s[2 * i + 1]);
}

/* Signals that this warp has read the buffer that the barrier guards. */
__device__ inline void release(dt_shared barrier)
{
    if (threadIdx.x % 32 == 0)
        dt_barrier_arrive(barrier);
}

template <typename T, int D>
__device__ inline void compute(const dt_attention &a, dt_shared at, int bh, int block_first,
                               int part, unsigned patience)
{
    typedef layout<D> to;
    int lane = (int)threadIdx.x % 32;
    int first = block_first + part * DT_GROUP_ROWS, queries = (int)a.queries;
    int own = (int)threadIdx.x % DT_GROUP / 32 * 16 +
              lane / 4; /* row within the warpgroup; the lane's other row is + 8 */
    int brought = tiles_seen(a, block_first, to::ROWS);
    int count = first < queries ? tiles_seen(a, first, DT_GROUP_ROWS) : 0;
    /* the number of tiles that the first query, and therefore every query, sees completely */
    int whole = (last_key(a, first) + 1) / KEYS, j = 0;
    float out[D / 8][4] = {}, s[COLS][4], max[2] = {-INFINITY, -INFINITY}, total[2] = {0.0f, 0.0f};
    float shrink[2], scale = a.scale * LOG2_E;
    dt_frag p[KEYS / 16];
    uint64_t q = dt_matrix(at + to::Q + (unsigned)part * to::OWN, 0);
    uint64_t k = dt_matrix(at + to::K, 0), v = dt_matrix(at + to::V, KEYS * DT_PANEL_ROW);
    auto mask = [&](int tile) {
        hide_keys(s, {last_key(a, first + own) - tile * KEYS,
                      last_key(a, first + own + 8) - tile * KEYS});
    };
    /* Computes the weights of tile j while the values of tile j - 1 are summed. */
    auto next = [&](auto masked) {
        unsigned now = (unsigned)dt_stage<STAGES>(j), last = (unsigned)dt_stage<STAGES>(j - 1);

        dt_barrier_wait(at + to::K_FILLED + 8 * now, dt_parity<STAGES>(j), patience);
        dt_wgmma_fence();
        queue_scores<T, D>(s, q, dt_matrix_from(k, now * to::TILE));
        dt_barrier_wait(at + to::V_FILLED + 8 * last, dt_parity<STAGES>(j - 1), patience);
        dt_wgmma_fence();
        queue_values<T, D>(out, p, dt_matrix_from(v, last * to::TILE));
        dt_wgmma_wait<1>();
        if (masked)
            mask(j);
        weigh(s, max, total, shrink, scale);
        if (threadIdx.x % 32 == 0)
            dt_barrier_arrive_after(at + to::K_FREE + 8 * now, total[0] + total[1]);
        dt_wgmma_wait<0>();
        release(at + to::V_FREE + 8 * last);
#pragma unroll
        for (int i = 0; i < D / 8; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                out[i][e] *= shrink[e / 2];
        round_weights<T>(p, s);
    };

    if (count > 0) {
        dt_barrier_wait(at + to::BARRIERS, 0, patience);
        dt_barrier_wait(at + to::K_FILLED, 0, patience);
        dt_wgmma_fence();
        queue_scores<T, D>(s, q, k);
        dt_wgmma_wait<0>();
        release(at + to::K_FREE);
        if (whole == 0)
            mask(0);
        weigh(s, max, total, shrink, scale);
        round_weights<T>(p, s);
        for (j = 1; j < whole && j < count; j++)
            next(std::false_type());
        for (; j < count; j++)
            next(std::true_type());
        unsigned last = (unsigned)dt_stage<STAGES>(count - 1);

        dt_barrier_wait(at + to::V_FILLED + 8 * last, dt_parity<STAGES>(count - 1), patience);
        dt_wgmma_fence();
        queue_values<T, D>(out, p, dt_matrix_from(v, last * to::TILE));
        dt_wgmma_wait<0>();
        release(at + to::V_FREE + 8 * last);
    }
    for (j = count; j < brought; j++) { /* tiles that only other rows of the block need */
        unsigned now = (unsigned)dt_stage<STAGES>(j);

        dt_barrier_wait(at + to::K_FILLED + 8 * now, dt_parity<STAGES>(j), patience);
        release(at + to::K_FREE + 8 * now);
        dt_barrier_wait(at + to::V_FILLED + 8 * now, dt_parity<STAGES>(j), patience);
        release(at + to::V_FREE + 8 * now);
    }
    if (count == 0)
        return;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int query = first + own + half * 8;

        total[half] += __shfl_xor_sync(0xffffffffu, total[half], 1);
        total[half] += __shfl_xor_sync(0xffffffffu, total[half], 2);
        if (query >= queries)
            continue;
        if (lane % 4 == 0)
            a.lse[bh * a.queries + query] = (max[half] * scale + log2f(total[half])) * LN_2;

        T *to_row = dt_attention_out_row<T>(a, a.out_written, bh, query) + lane % 4 * 2;
        float factor = 1.0f / total[half];

#pragma unroll
        for (int i = 0; i < D / 8; i++)
            *(uint32_t *)(to_row + i * 8) =
                dt_pack(out[i][half * 2] * factor, out[i][half * 2 + 1] * factor, T());
    }
}

template <typename T, int D>
__global__ void __launch_bounds__((GROUPS + 1) * DT_GROUP, 1)
    wgmma_forward(const dt_attention a, const __grid_constant__ maps from, unsigned patience)
{
#if DT_HAS_WGMMA
    DT_CUDA_DYNAMIC_SHARED(memory);
    typedef layout<D> to;
    dt_shared at = dt_swizzled_at(memory);
    int group = dt_group();
    int blocks = ((int)a.queries + to::ROWS - 1) / to::ROWS, block = (int)blockIdx.x;
    int bh = block / blocks,
        first = (blocks - 1 - block % blocks) * to::ROWS; /* the longest rows first */

    if (threadIdx.x == 0) {
        dt_barrier_make(at + to::BARRIERS, 1);
        for (unsigned i = 0; i < STAGES; i++) {
            dt_barrier_make(at + to::K_FILLED + 8 * i, 1);
            dt_barrier_make(at + to::V_FILLED + 8 * i, 1);
            dt_barrier_make(at + to::K_FREE + 8 * i, GROUPS * DT_GROUP / 32);
            dt_barrier_make(at + to::V_FREE + 8 * i, GROUPS * DT_GROUP / 32);
        }
        dt_barriers_made();
    }
    __syncthreads();
    if (group == 0) {
        dt_registers_fewer<BRINGS>();
        if (threadIdx.x == 0)
            bring<D>(a, from, at, bh, first, patience);
    } else {
        dt_registers_more<COMPUTES>();
        compute<T, D>(a, at, bh, first, group - 1, patience);
    }
#endif
}

} // namespace

/* --- the launch */

static dt_status map_of(dt_tensor_map *out, const dt_attention &a, const dt_attention_rows &x,
                        int64_t heads, int64_t rows, unsigned box_rows, dt_error *err)
{
    dt_heads_in_memory in = {x.data, a.d, heads, rows, a.batch, x.row, x.sequence};

    if (a.batch == 1) /* the stride is never used then, and may have any value */
        in.sequence_stride = rows * x.row;
    return dt_tensor_map_make(out, &in, box_rows, err);
}

template <typename T, int D>
static dt_status forward_of(dt_cuda_state *state, const dt_attention &a, unsigned patience,
                            dt_error *err)
{
    unsigned grid = (unsigned)(dt_cuda_ceil(a.queries, layout<D>::ROWS) * a.batch * a.heads);
    dt_status st = DT_OK;
    maps from;

    DT_TRY(map_of(&from.q, a, a.q, a.heads, a.queries, DT_GROUP_ROWS, err));
    DT_TRY(map_of(&from.k, a, a.k, a.groups, a.keys, KEYS, err));
    DT_TRY(map_of(&from.v, a, a.v, a.groups, a.keys, KEYS, err));
    DT_TRY(dt_cuda_check(cudaFuncSetAttribute((const void *)wgmma_forward<T, D>,
                                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              (int)layout<D>::BYTES),
                         "attention", err));
    DT_CUDA_LAUNCH((wgmma_forward<T, D>), grid, (GROUPS + 1) * DT_GROUP, layout<D>::BYTES,
                   state->stream, a, from, patience);
    DT_TRY(dt_cuda_launched("attention", err));
out:
    return st;
}

dt_status dt_attention_wgmma_forward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                     unsigned patience, dt_error *err)
{
    if (dtype == DT_BF16)
        return a.d == 128 ? forward_of<__nv_bfloat16, 128>(state, a, patience, err)
                          : forward_of<__nv_bfloat16, 64>(state, a, patience, err);
    return a.d == 128 ? forward_of<__half, 128>(state, a, patience, err)
                      : forward_of<__half, 64>(state, a, patience, err);
}
