/* attention_flash: computes attention in tiles that stay on the chip (Dao et al. 2022; Dao 2023).
 *
 * A block has four warps; each warp computes 16 of the block's 64 rows. Tiles of the other operand arrive by
 * asynchronous copies into two alternating buffers.
 *   forward   rows are queries: S = Q K^T, running maximum and sum, O += P V
 *   dq        rows are queries: S again, P from lse, dP = dO V^T, dS = P (dP - delta), dQ += dS K
 *   dk, dv    rows are keys, everything transposed: dV += P^T dO, dK += dS^T Q
 * S and dP are computed in both backward kernels (7 products per tile instead of 5), so that every sum has
 * one owner and a fixed order, without atomics and without a buffer of partial dQ.
 * FLOPs        forward 4 B H T^2 D, backward 10 B H T^2 D necessary, 14 done; causal, half of that
 * Exponentials are to base 2, of scores times log2(e) / sqrt(D), so that scaling and subtracting the maximum
 *              are one fused multiply-add
 * Masks        only tiles in which some query does not see all keys are masked: those on the diagonal
 */
#include "engine/ops/cuda/attention_int.cuh"

#define LOG2_E 1.4426950408889634f
#define LN_2   0.6931471805599453f
#define COLS   8 /* accumulators of 8 columns per tile */

/* The operands of one query head, with those of its key head. */
template <typename T> struct head {
    const T *q, *k, *v, *dout;
    const float *lse, *delta;
};

template <typename T> __device__ inline head<T> head_of(const dt_attention &a, int64_t bh)
{
    head<T> h;

    h.q = dt_attention_query_row<T>(a, a.q, bh, 0);
    h.k = dt_attention_key_row<T>(a, a.k, bh, 0);
    h.v = dt_attention_key_row<T>(a, a.v, bh, 0);
    h.dout = dt_attention_out_row<T>(a, a.dout, bh, 0);
    h.lse = a.lse + bh * a.queries;
    h.delta = a.delta + bh * a.queries;
    return h;
}

/* acc += left right^T over D, where left has 16 rows and right has N accumulators of 8 rows each,
 * from row `n` on. */
template <typename T, int D, int N>
__device__ inline void products_of_rows(float (&acc)[N][4], dt_shared left, dt_shared right, int n)
{
#pragma unroll
    for (int col = 0; col < D; col += 16) {
        dt_frag a = dt_frag_left<D>(left, 0, col);

#pragma unroll
        for (int i = 0; i < N; i += 2)
            dt_mma_pair<T>(acc[i], acc[i + 1], a, dt_frag_rows<D>(right, n + i * 8, col));
    }
}

/* acc (16 x D) += weights (16 x 8N) times the rows of `right` from row n on. */
template <typename T, int D, int N>
__device__ inline void weighted_rows(float (&acc)[D / 8][4], const float (&weights)[N][4],
                                     dt_shared right, int n)
{
#pragma unroll
    for (int i = 0; i < N; i += 2) {
        dt_frag a = dt_frag_of<T>(weights[i], weights[i + 1]);

#pragma unroll
        for (int j = 0; j < D / 8; j += 2)
            dt_mma_pair<T>(acc[j], acc[j + 1], a, dt_frag_cols<D>(right, n + i * 8, j * 8));
    }
}

/* Writes 16 rows of D columns from accumulators, except rows from `limit` on. */
template <typename T, int D>
__device__ inline void write_rows(T *matrix, int64_t stride, int64_t first, int64_t limit,
                                  const float (&acc)[D / 8][4], float factor_low, float factor_high)
{
    int lane = (int)threadIdx.x % 32;
    int64_t low = first + lane / 4, high = low + 8;

#pragma unroll
    for (int j = 0; j < D / 8; j++) {
        int col = j * 8 + lane % 4 * 2;

        if (low < limit)
            *(uint32_t *)(matrix + low * stride + col) =
                dt_pack(acc[j][0] * factor_low, acc[j][1] * factor_low, T());
        if (high < limit)
            *(uint32_t *)(matrix + high * stride + col) =
                dt_pack(acc[j][2] * factor_high, acc[j][3] * factor_high, T());
    }
}

/* out[d] = the sums of the columns of a block's rows, except rows from `limit` on. */
template <int D>
__device__ inline void sum_rows(float *out, int64_t first, int64_t limit,
                                const float (&acc)[D / 8][4], float factor)
{
    __shared__ float shared[DT_TILE_THREADS / 32 * D];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int64_t row = first + warp * 16 + lane / 4;
    bool low = row < limit, high = row + 8 < limit;

#pragma unroll
    for (int j = 0; j < D / 8; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float sum = (low ? acc[j][e] : 0.0f) + (high ? acc[j][e + 2] : 0.0f);

#pragma unroll
            for (int step = 4; step < 32; step <<= 1)
                sum += __shfl_xor_sync(0xffffffffu, sum, step);
            if (lane < 4)
                shared[warp * D + j * 8 + lane * 2 + e] = sum;
        }
    __syncthreads();
    for (int d = (int)threadIdx.x; d < D; d += DT_TILE_THREADS) {
        float sum = shared[d];

        for (int i = 1; i < DT_TILE_THREADS / 32; i++)
            sum += shared[i * D + d];
        out[d] = sum * factor;
    }
    __syncthreads();
}

/* Returns the number of tiles for `rows` rows. */
__host__ __device__ inline int tiles_of(int64_t rows)
{
    return (int)((rows + DT_TILE - 1) / DT_TILE);
}

/* Returns the tile with the last key that any query of a tile sees; `first` is the first query of
 * that tile. */
__device__ inline int last_tile(const dt_attention &a, int64_t first)
{
    int64_t key = dt_attention_last_key(a, first + DT_TILE - 1);

    return (int)((key < a.keys ? key : a.keys - 1) / DT_TILE);
}

/* Returns the last key that a query sees, counted from the first key of tile j; it may be negative
 * or beyond that tile. */
__device__ inline int last_within(const dt_attention &a, int64_t query, int j)
{
    return (int)(dt_attention_last_key(a, query) - (int64_t)j * DT_TILE);
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

/* --- forward */

template <typename T, int D, bool DROPS>
__global__ void __launch_bounds__(DT_TILE_THREADS) forward(dt_attention a)
{
    DT_CUDA_DYNAMIC_SHARED(memory);
    constexpr unsigned TILE = DT_TILE_BYTES<D>;
    dt_shared q_tile = dt_shared_at(memory), k_tiles = q_tile + TILE, v_tiles = k_tiles + 2 * TILE;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int blocks = tiles_of(a.queries), block = blocks - 1 - (int)(blockIdx.x % (unsigned)blocks);
    int64_t bh = blockIdx.x / (unsigned)blocks, first = (int64_t)block * DT_TILE;
    int64_t row = first + warp * 16 + lane / 4;
    int last = last_tile(a, first);
    const dt_philox_key drawn = DROPS ? dt_philox_now(&a.key) : a.key;
    head<T> h = head_of<T>(a, bh);
    float out[D / 8][4] = {}, max[2] = {-INFINITY, -INFINITY}, total[2] = {0.0f, 0.0f};
    float scale = a.scale * LOG2_E;
    dt_tile_walk<T, D> queries = dt_tile_walk_from<T, D>(h.q, a.q.row, first, a.queries);
    dt_tile_walk<T, D> keys = dt_tile_walk_from<T, D>(h.k, a.k.row, 0, a.keys);
    dt_tile_walk<T, D> values = dt_tile_walk_from<T, D>(h.v, a.v.row, 0, a.keys);
    dt_shared left = q_tile + (unsigned)(warp * 16 * D * 2) + dt_lane_of_left<D>();
    /* a tile whose first key is at most this one is visible to all queries */
    int unmasked = last_within(a, first, 0) - (DT_TILE - 1);

    dt_tile_load(q_tile, queries);
    dt_tile_load(k_tiles, keys);
    dt_tile_load(v_tiles, values);
    dt_tile_commit();
    for (int j = 0; j <= last; j++) {
        unsigned now = (unsigned)(j & 1) * TILE;
        float s[COLS][4] = {};

        if (j < last) {
            dt_tile_load(k_tiles + (TILE - now), keys);
            dt_tile_load(v_tiles + (TILE - now), values);
            dt_tile_commit();
            dt_tile_wait<1>();
        } else {
            dt_tile_wait<0>();
        }
        __syncthreads();
        products_of_rows<T, D, COLS>(s, left, k_tiles + now + dt_lane_of_rows<D>(), 0);
        if (j * DT_TILE > unmasked)
            hide_keys(s, {last_within(a, row, j), last_within(a, row + 8, j)});
#pragma unroll
        for (int half = 0; half < 2; half++) { /* rows lane/4 and lane/4 + 8 */
            int64_t query = row + half * 8;
            float top = max[half], shrink, shift;

#pragma unroll
            for (int i = 0; i < COLS; i++)
                top = fmaxf(top, fmaxf(s[i][half * 2], s[i][half * 2 + 1]));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
            shrink = dt_exp2((max[half] - top) * scale);
            shift = top * scale;
            max[half] = top;
            total[half] *= shrink;
#pragma unroll
            for (int i = 0; i < COLS; i++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float *x = &s[i][half * 2 + e];

                    *x = dt_exp2(fmaf(*x, scale, -shift));
                    total[half] += *x;
                    if (DROPS)
                        *x *= dt_attention_mask(a, drawn, bh, query,
                                                (int64_t)j * DT_TILE + i * 8 + lane % 4 * 2 + e);
                }
#pragma unroll
            for (int i = 0; i < D / 8; i++) {
                out[i][half * 2] *= shrink;
                out[i][half * 2 + 1] *= shrink;
            }
        }
        weighted_rows<T, D, COLS>(out, s, v_tiles + now + dt_lane_of_left<D>(), 0);
        __syncthreads(); /* all warps have read the buffers: the copy after the next one may overwrite them */
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        total[half] += __shfl_xor_sync(0xffffffffu, total[half], 1);
        total[half] += __shfl_xor_sync(0xffffffffu, total[half], 2);
        if (lane % 4 == 0 && row + half * 8 < a.queries)
            a.lse[bh * a.queries + row + half * 8] =
                (max[half] * scale + log2f(total[half])) * LN_2;
    }
    write_rows<T, D>(dt_attention_out_row<T>(a, a.out_written, bh, 0), a.heads * a.d,
                     first + warp * 16, a.queries, out, 1.0f / total[0], 1.0f / total[1]);
}

/* --- backward, gradient of the queries */

template <typename T, int D, bool DROPS>
__global__ void __launch_bounds__(DT_TILE_THREADS) backward_queries(dt_attention a)
{
    DT_CUDA_DYNAMIC_SHARED(memory);
    constexpr unsigned TILE = DT_TILE_BYTES<D>;
    dt_shared q_tile = dt_shared_at(memory), dout_tile = q_tile + TILE;
    dt_shared k_tiles = dout_tile + TILE, v_tiles = k_tiles + 2 * TILE;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int blocks = tiles_of(a.queries), block = blocks - 1 - (int)(blockIdx.x % (unsigned)blocks);
    int64_t bh = blockIdx.x / (unsigned)blocks, first = (int64_t)block * DT_TILE;
    int64_t row = first + warp * 16 + lane / 4;
    int last = last_tile(a, first);
    const dt_philox_key drawn = DROPS ? dt_philox_now(&a.key) : a.key;
    head<T> h = head_of<T>(a, bh);
    float dq[D / 8][4] = {}, lse[2], delta[2], scale = a.scale * LOG2_E;
    dt_tile_walk<T, D> queries = dt_tile_walk_from<T, D>(h.q, a.q.row, first, a.queries);
    dt_tile_walk<T, D> douts = dt_tile_walk_from<T, D>(h.dout, a.heads * a.d, first, a.queries);
    dt_tile_walk<T, D> keys = dt_tile_walk_from<T, D>(h.k, a.k.row, 0, a.keys);
    dt_tile_walk<T, D> values = dt_tile_walk_from<T, D>(h.v, a.v.row, 0, a.keys);
    unsigned left = (unsigned)(warp * 16 * D * 2) + dt_lane_of_left<D>();
    int unmasked = last_within(a, first, 0) - (DT_TILE - 1); /* as in the forward pass */

#pragma unroll
    for (int half = 0; half < 2; half++) {
        bool inside = row + half * 8 < a.queries;

        lse[half] = inside ? h.lse[row + half * 8] * LOG2_E : INFINITY; /* INFINITY makes P 0 */
        delta[half] = inside ? h.delta[row + half * 8] : 0.0f;
    }
    dt_tile_load(q_tile, queries);
    dt_tile_load(dout_tile, douts);
    dt_tile_load(k_tiles, keys);
    dt_tile_load(v_tiles, values);
    dt_tile_commit();
    for (int j = 0; j <= last; j++) {
        unsigned now = (unsigned)(j & 1) * TILE;
        dt_shared k_tile = k_tiles + now, v_tile = v_tiles + now;
        float s[COLS][4] = {}, dp[COLS][4] = {};

        if (j < last) {
            dt_tile_load(k_tiles + (TILE - now), keys);
            dt_tile_load(v_tiles + (TILE - now), values);
            dt_tile_commit();
            dt_tile_wait<1>();
        } else {
            dt_tile_wait<0>();
        }
        __syncthreads();
        products_of_rows<T, D, COLS>(s, q_tile + left, k_tile + dt_lane_of_rows<D>(), 0);
        products_of_rows<T, D, COLS>(dp, dout_tile + left, v_tile + dt_lane_of_rows<D>(), 0);
        if (j * DT_TILE > unmasked)
            hide_keys(s, {last_within(a, row, j), last_within(a, row + 8, j)});
#pragma unroll
        for (int i = 0; i < COLS; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int at = i * 8 + lane % 4 * 2 + e % 2; /* the key, within the tile */
                float probability = dt_exp2(fmaf(s[i][e], scale, -lse[e / 2]));

                if (DROPS)
                    dp[i][e] *=
                        dt_attention_mask(a, drawn, bh, row + e / 2 * 8, (int64_t)j * DT_TILE + at);
                s[i][e] = probability * (dp[i][e] - delta[e / 2]);
            }
        weighted_rows<T, D, COLS>(dq, s, k_tile + dt_lane_of_left<D>(), 0);
        __syncthreads();
    }
    write_rows<T, D>(dt_attention_query_row<T>(a, a.dq, bh, 0), a.dq.row, first + warp * 16,
                     a.queries, dq, a.scale, a.scale);
    if (a.dq_sums != NULL) {
        unsigned at = blockIdx.x;

        /* read again: what is computed from it takes no registers and no instructions in the loop */
        asm volatile("" : "+r"(at));
        block = blocks - 1 - (int)(at % (unsigned)blocks);
        bh = at / (unsigned)blocks;
        sum_rows<D>(a.dq_sums + ((bh / a.heads * blocks + block) * a.heads + bh % a.heads) * D,
                    (int64_t)block * DT_TILE, a.queries, dq, a.scale);
    }
}

/* --- backward, gradients of the keys and values */

/* Loads lse (base 2) and delta of a tile's queries; rows from `limit` on get values for which P is
 * 0. */
template <typename T>
__device__ inline void load_statistics(float *lse, float *delta, const head<T> &h, int64_t first,
                                       int64_t limit)
{
    int i = (int)threadIdx.x;

    if (i < DT_TILE) {
        bool inside = first + i < limit;

        lse[i] = inside ? h.lse[first + i] * LOG2_E : INFINITY;
        delta[i] = inside ? h.delta[first + i] : 0.0f;
    }
}

/* The position in the sequence of query tiles that a key tile iterates over: all tiles of one query
 * head that see the keys, then those of the next head of the group. */
struct query_tiles {
    int64_t bh;
    int begin, count, tile; /* first tile that sees the keys, number of tiles, current tile */
};

/* Advances; returns whether the next tile belongs to another head. */
__device__ inline bool next_tile(query_tiles &at)
{
    if (++at.tile < at.count)
        return false;
    at.tile = at.begin;
    at.bh++;
    return true;
}

/* The tiles to copy, one ahead of those in use. */
template <typename T, int D> struct query_walk {
    head<T> h;
    query_tiles at;
    dt_tile_walk<T, D> q, dout;
};

template <typename T, int D>
__device__ inline void begin_head(const dt_attention &a, query_walk<T, D> &w)
{
    int64_t first = (int64_t)w.at.tile * DT_TILE;

    w.h = head_of<T>(a, w.at.bh);
    w.q = dt_tile_walk_from<T, D>(w.h.q, a.q.row, first, a.queries);
    w.dout = dt_tile_walk_from<T, D>(w.h.dout, a.heads * a.d, first, a.queries);
}

template <typename T, int D>
__device__ inline void load_queries(dt_shared q_tile, dt_shared dout_tile, float *lse, float *delta,
                                    const dt_attention &a, query_walk<T, D> &w)
{
    dt_tile_load(q_tile, w.q);
    dt_tile_load(dout_tile, w.dout);
    dt_tile_commit();
    load_statistics(lse, delta, w.h, (int64_t)w.at.tile * DT_TILE, a.queries);
}

/* Sets the scores of queries that do not see the lane's two key rows to minus infinity; `hidden` is
 * the number of hidden queries from n on, for each row. */
template <int N> __device__ inline void hide_queries(float (&s)[N][4], const int (&hidden)[2])
{
    int at = (int)threadIdx.x % 4 * 2;

#pragma unroll
    for (int c = 0; c < N; c++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (c * 8 + at + e % 2 < hidden[e / 2])
                s[c][e] = -INFINITY;
}

/* Values of two neighbouring queries, read with one load. */
struct alignas(8) query_pair {
    float x[2];
};

/* For a large D, half of the queries are computed at a time, because the accumulators of all would
 * not fit the registers. */
template <typename T, int D, bool DROPS>
__global__ void __launch_bounds__(DT_TILE_THREADS) backward_keys(dt_attention a)
{
    DT_CUDA_DYNAMIC_SHARED(memory);
    constexpr int N = D > 64 ? COLS / 2 : COLS;
    constexpr unsigned TILE = DT_TILE_BYTES<D>;
    dt_shared k_tile = dt_shared_at(memory), v_tile = k_tile + TILE;
    dt_shared q_tiles = v_tile + TILE, dout_tiles = q_tiles + 2 * TILE;
    float *lse = (float *)(memory + 6 * TILE), *delta = lse + 2 * DT_TILE;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int blocks = tiles_of(a.keys), block = (int)(blockIdx.x % (unsigned)blocks);
    int64_t first_head = dt_attention_head_of(a, blockIdx.x / (unsigned)blocks);
    int64_t first = (int64_t)block * DT_TILE, row = first + warp * 16 + lane / 4;
    bool causal = a.mask == DT_MASK_CAUSAL;
    int begin = causal ? block : 0, count = tiles_of(a.queries);
    int left = (int)a.group * (count - begin); /* query tiles still to come */
    const dt_philox_key drawn = DROPS ? dt_philox_now(&a.key) : a.key;
    query_tiles at = {first_head, begin, count, begin};
    query_walk<T, D> ahead = {};
    float dk[D / 8][4] = {}, dv[D / 8][4] = {}, scale = a.scale * LOG2_E;
    unsigned own = (unsigned)(warp * 16 * D * 2) + dt_lane_of_left<D>();

    ahead.at = at;
    begin_head(a, ahead);
    dt_tile_walk<T, D> keys = dt_tile_walk_from<T, D>(ahead.h.k, a.k.row, first, a.keys);
    dt_tile_walk<T, D> values = dt_tile_walk_from<T, D>(ahead.h.v, a.v.row, first, a.keys);
    dt_tile_load(k_tile, keys);
    dt_tile_load(v_tile, values);
    load_queries(q_tiles, dout_tiles, lse, delta, a, ahead);
    for (int now = 0; left > 0; left--, now ^= 1, next_tile(at)) {
        dt_shared q_tile = q_tiles + (unsigned)now * TILE,
                  dout_tile = dout_tiles + (unsigned)now * TILE;

        if (left > 1) {
            int then = now ^ 1;

            if (next_tile(ahead.at))
                begin_head(a, ahead);
            load_queries(q_tiles + (unsigned)then * TILE, dout_tiles + (unsigned)then * TILE,
                         lse + then * DT_TILE, delta + then * DT_TILE, a, ahead);
            dt_tile_wait<1>();
        } else {
            dt_tile_wait<0>();
        }
        __syncthreads();
#pragma unroll
        for (int n = 0; n < DT_TILE; n += N * 8) {
            float s[N][4] = {}, dp[N][4] = {};

            products_of_rows<T, D, N>(s, k_tile + own, q_tile + dt_lane_of_rows<D>(), n);
            products_of_rows<T, D, N>(dp, v_tile + own, dout_tile + dt_lane_of_rows<D>(), n);
            if (causal && at.tile == block) { /* the diagonal: as many queries as keys */
                int before = warp * 16 + lane / 4 - n;

                hide_queries(s, {before, before + 8});
            }
#pragma unroll
            for (int c = 0; c < N; c++) {
                int pair = now * DT_TILE + n + c * 8 + lane % 4 * 2;
                query_pair lse_of = *(const query_pair *)(lse + pair);
                query_pair delta_of = *(const query_pair *)(delta + pair);

#pragma unroll
                for (int e = 0; e < 4; e++) {
                    int query = n + c * 8 + lane % 4 * 2 + e % 2; /* within the tile */
                    float probability = dt_exp2(fmaf(s[c][e], scale, -lse_of.x[e % 2]));
                    float mask = DROPS ? dt_attention_mask(a, drawn, at.bh,
                                                           (int64_t)at.tile * DT_TILE + query,
                                                           row + e / 2 * 8)
                                       : 1.0f;

                    s[c][e] = probability * mask;
                    dp[c][e] = probability * (mask * dp[c][e] - delta_of.x[e % 2]);
                }
            }
            weighted_rows<T, D, N>(dv, s, dout_tile + dt_lane_of_left<D>(), n);
            weighted_rows<T, D, N>(dk, dp, q_tile + dt_lane_of_left<D>(), n);
        }
        __syncthreads();
    }
    write_rows<T, D>(dt_attention_key_row<T>(a, a.dk, first_head, 0), a.dk.row, first + warp * 16,
                     a.keys, dk, a.scale, a.scale);
    write_rows<T, D>(dt_attention_key_row<T>(a, a.dv, first_head, 0), a.dv.row, first + warp * 16,
                     a.keys, dv, 1.0f, 1.0f);
    if (a.dk_sums != NULL) {
        int64_t bg = blockIdx.x / (unsigned)blocks;
        float *sums =
            a.dk_sums + ((bg / a.groups * blocks + block) * 2 * a.groups + bg % a.groups) * D;

        sum_rows<D>(sums, first, a.keys, dk, a.scale);
        sum_rows<D>(sums + a.groups * D, first, a.keys, dv, 1.0f);
    }
}

/* --- launches */

typedef void (*kernel)(dt_attention);

/* Launches a kernel for `rows` rows of each of the given number of heads. */
static dt_status launch(dt_cuda_state *state, kernel which, const dt_attention &a, int64_t rows,
                        int64_t heads, size_t bytes, dt_error *err)
{
    unsigned grid = (unsigned)(tiles_of(rows) * a.batch * heads);
    dt_status st =
        dt_cuda_check(cudaFuncSetAttribute((const void *)which,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
                      "attention", err);

    if (st != DT_OK)
        return st;
    DT_CUDA_LAUNCH(which, grid, DT_TILE_THREADS, bytes, state->stream, a);
    return dt_cuda_launched("attention", err);
}

template <typename T, int D, bool DROPS>
static dt_status forward_of(dt_cuda_state *state, const dt_attention &a, dt_error *err)
{
    return launch(state, forward<T, D, DROPS>, a, a.queries, a.heads, 5 * DT_TILE * D * sizeof(T),
                  err);
}

template <typename T, int D, bool DROPS>
static dt_status backward_of(dt_cuda_state *state, const dt_attention &a, dt_error *err)
{
    size_t tiles = 6 * DT_TILE * D * sizeof(T), statistics = 4 * DT_TILE * sizeof(float);
    dt_status st =
        launch(state, backward_keys<T, D, DROPS>, a, a.keys, a.groups, tiles + statistics, err);

    if (st != DT_OK)
        return st;
    return launch(state, backward_queries<T, D, DROPS>, a, a.queries, a.heads, tiles, err);
}

#define CHOOSE(function)                                                       \
    do {                                                                       \
        bool bf16 = dtype == DT_BF16, wide = a.d == 128, drops = a.p > 0.0f;   \
                                                                               \
        if (bf16 && wide)                                                      \
            return drops ? function<__nv_bfloat16, 128, true>(state, a, err)   \
                         : function<__nv_bfloat16, 128, false>(state, a, err); \
        if (bf16)                                                              \
            return drops ? function<__nv_bfloat16, 64, true>(state, a, err)    \
                         : function<__nv_bfloat16, 64, false>(state, a, err);  \
        if (wide)                                                              \
            return drops ? function<__half, 128, true>(state, a, err)          \
                         : function<__half, 128, false>(state, a, err);        \
        return drops ? function<__half, 64, true>(state, a, err)               \
                     : function<__half, 64, false>(state, a, err);             \
    } while (0)

/* Returns whether every row starts at a multiple of `bytes` bytes; elements have two bytes. */
static bool aligned(const dt_attention_rows &x, int bytes)
{
    return (((uintptr_t)x.data | (uintptr_t)(x.row * 2) | (uintptr_t)(x.sequence * 2)) &
            (uintptr_t)(bytes - 1)) == 0;
}

/* Rows that are read as tiles must be aligned to 16 bytes, rows that are written as pairs to 4. */
bool dt_attention_flash_has(const dt_attention &a, dt_dtype dtype)
{
    bool backward = a.dout != NULL;

    return (dtype == DT_BF16 || dtype == DT_F16) && (a.d == 64 || a.d == 128) &&
           (a.mask == DT_MASK_CAUSAL || a.mask == DT_MASK_FULL) && a.softcap == 0.0f &&
           (a.window == 0 || a.window >= a.keys) && (!backward || a.queries == a.keys) &&
           aligned(a.q, 16) && aligned(a.k, 16) && aligned(a.v, 16) && aligned(a.dq, 4) &&
           aligned(a.dk, 4) && aligned(a.dv, 4) && ((uintptr_t)a.dout & 15) == 0 &&
           ((uintptr_t)a.out_written & 3) == 0;
}

int64_t dt_attention_flash_tiles(int64_t rows)
{
    return tiles_of(rows);
}

dt_status dt_attention_flash_forward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                     dt_error *err)
{
    CHOOSE(forward_of);
}

dt_status dt_attention_flash_backward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                      dt_error *err)
{
    CHOOSE(backward_of);
}
