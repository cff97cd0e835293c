/* attention_int: what the implementations of attention share: their arguments, tiles on the tensor cores,
 * and the comparison of two of them on one call's data.
 *
 *   attention.cu         chooses one of them; computes the sums of dout * out for all backward passes
 *   attention.cu   any type, mask and odd size, heads up to 256; one warp per row, fp32 arithmetic
 *   attention_flash.cu   bf16 and fp16, heads of 64 and 128, tiles on the tensor cores; causal and full
 *                        masks; backward only if there are as many queries as keys
 *   attention_wgmma.cu   the forward pass of attention_flash.cu without dropout, for sm_90a: warpgroup
 *                        products, tiles by bulk copies
 *   attention_own.cu     chooses between attention_flash.cu and attention_wgmma.cu
 *   attention_cudnn.cu   cuDNN: only causal forward passes of packed heads that attention_flash.cu
 *                        supports
 */
#ifndef DT_ENGINE_OPS_CUDA_ATTENTION_INT_CUH
#define DT_ENGINE_OPS_CUDA_ATTENTION_INT_CUH

#include "engine/ops/cuda/cuda_int.cuh"
#include "engine/ops/cuda/ptx.cuh"

/* Rows of heads (dt_heads in engine/ops/ops.h) in the form that kernels use; dt_attention has their number
 * and width. */
struct dt_attention_rows {
    void *data;
    int64_t row, sequence; /* strides, in elements */
};

/* The arguments of one call.
 * Heads  `bh` numbers the query heads of all sequences, `bg` the key heads
 * Grids  one-dimensional, all blocks of a head contiguous: batch * heads may exceed 65,535, the limit
 *        of the other dimensions of a grid
 */
struct dt_attention {
    int64_t batch, queries, keys, d;
    int64_t heads, groups, group;  /* query heads; key heads; query heads per key head */
    int64_t first_head, all_heads; /* of the dropout index (ops.h) */
    dt_attention_rows q, k, v, dq, dk, dv;
    const void *out, *dout; /* (B,Q,H*D) */
    void *out_written;
    float *lse;         /* (B,H,Q); forward writes it */
    const float *delta; /* (B,H,Q): sum over d of dout * out; backward only */
    dt_mask_kind mask;
    const int32_t *starts;  /* (B,K); SEGMENTS only */
    const int32_t *lengths; /* (B); LENGTHS only */
    int64_t window;         /* 0: none */
    float scale;            /* of the scores */
    float softcap;          /* 0: none */
    float p, keep;          /* dropout probability, 1 / (1 - p) */
    dt_philox_key key;
    /* flash backward only; NULL: not wanted. Each block's sums over its rows: of dq (B*tiles,H*D), and of dk and dv
     * (B*tiles,2,G*D) */
    float *dq_sums, *dk_sums;
};

/* Return row `row` of a query head, and of the key head that it uses. */
template <typename T>
__device__ inline T *dt_attention_query_row(const dt_attention &a, const dt_attention_rows &x,
                                            int64_t bh, int64_t row)
{
    return (T *)x.data + bh / a.heads * x.sequence + row * x.row + bh % a.heads * a.d;
}

template <typename T>
__device__ inline T *dt_attention_key_row(const dt_attention &a, const dt_attention_rows &x,
                                          int64_t bh, int64_t row)
{
    return (T *)x.data + bh / a.heads * x.sequence + row * x.row + bh % a.heads / a.group * a.d;
}

/* Returns row `row` of out or dout. */
template <typename T>
__device__ inline T *dt_attention_out_row(const dt_attention &a, const void *out, int64_t bh,
                                          int64_t row)
{
    return (T *)out + ((bh / a.heads * a.queries + row) * a.heads + bh % a.heads) * a.d;
}

/* Returns the first query head that uses a key head. */
__device__ inline int64_t dt_attention_head_of(const dt_attention &a, int64_t bg)
{
    return bg * a.group; /* heads = groups * group */
}

/* Return the first key that a query sees, and the last one for all masks but LENGTHS. A query beyond
 * the sequence may see all keys. */
__device__ inline int64_t dt_attention_first_key(const dt_attention &a, int64_t bh, int64_t query)
{
    int64_t at = query + a.keys - a.queries, first = 0;

    if (a.mask == DT_MASK_LENGTHS)
        at = a.lengths[bh / a.heads] - 1;
    if (a.mask == DT_MASK_SEGMENTS)
        first = a.starts[bh / a.heads * a.keys + at];
    return a.window > 0 && at + 1 - first > a.window ? at + 1 - a.window : first;
}

__device__ inline int64_t dt_attention_last_key(const dt_attention &a, int64_t query)
{
    return a.mask == DT_MASK_FULL ? a.keys - 1 : query + a.keys - a.queries;
}

/* Returns the dropout factor of (query, key) of head `bh`: 0 or keep. `drawn` is a.key with its
 * clock read: the step number may be in memory, and is read once. */
__device__ inline float dt_attention_mask(const dt_attention &a, const dt_philox_key &drawn,
                                          int64_t bh, int64_t query, int64_t key)
{
    int64_t head =
        a.all_heads == a.heads ? bh : bh / a.heads * a.all_heads + a.first_head + bh % a.heads;
    uint64_t index =
        ((uint64_t)head * (uint64_t)a.queries + (uint64_t)query) * (uint64_t)a.keys + (uint64_t)key;
    dt_philox_block block = dt_philox_draw(&drawn, index / 4);

    /* indexing the four words would move them from registers to memory */
    uint32_t low = index & 1 ? block.word[1] : block.word[0];
    uint32_t high = index & 1 ? block.word[3] : block.word[2];

    return dt_philox_uniform(index & 2 ? high : low) >= a.p ? a.keep : 0.0f;
}

dt_status dt_attention_plain_forward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                     dt_error *err);
dt_status dt_attention_plain_backward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                      dt_error *err);

/* Computes the forward pass with cuDNN, if it is chosen for the call. *done false: the caller must
 * run the built-in kernel, and all output is unspecified. */
dt_status dt_attention_cudnn_forward(dt_device *device, const dt_attention &a, dt_dtype dtype,
                                     bool *done, dt_error *err);

bool dt_attention_flash_has(const dt_attention &a, dt_dtype dtype);
/* Tiles of the flash kernels for `rows` rows. */
int64_t dt_attention_flash_tiles(int64_t rows);
dt_status dt_attention_flash_forward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                     dt_error *err);
/* Like dt_attention_cudnn_forward, with the kernel for sm_90a (attention_own.cu). */
dt_status dt_attention_own_forward(dt_device *device, const dt_attention &a, dt_dtype dtype,
                                   dt_error *err);
dt_status dt_attention_flash_backward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                      dt_error *err);

/* Computes a call for which dt_attention_flash_has() is true, without dropout, on GPUs of compute
 * capability 9.0. patience: how often a thread tests a barrier before it continues regardless, so
 * that a hang becomes wrong results; 0: no limit. */
dt_status dt_attention_wgmma_forward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                     unsigned patience, dt_error *err);

/* attention_trial: compares two implementations of attention on one call's data: their times, and
 * the difference of their results. */

#define DT_TRIALS 3
#define DT_RUNS   4 /* per trial: all but the first launch overlap with running kernels */

/* The results of one forward pass. */
struct dt_attention_results {
    void *out; /* (B,Q,H*D), in the call's type */
    float *lse;
};

/* Allocates memory for two results of the call. Release with cudaFree() on `out` of the first. */
dt_status dt_attention_results_take(dt_attention_results (&out)[2], const dt_attention &a,
                                    dt_dtype dtype, dt_error *err);

/* DT_ERR_UNSUPPORTED if the two results in `theirs`, of two runs of the same kernel, are not
 * bit-identical, or differ from a.out_written and a.lse by more than rounding. Waits for the
 * stream. */
dt_status dt_attention_results_agree(dt_device *device, const dt_attention &a, dt_dtype dtype,
                                     const dt_attention_results (&theirs)[2], dt_error *err);

/* *apart = the largest |a - b| of rows x cols elements. If `relative`, it is divided by the row's
 * largest |a|. A number that is not finite in only one of the two counts as an infinite difference.
 * dtype may be F32. Waits for the stream. */
dt_status dt_attention_apart(float *apart, dt_device *device, const void *a, const void *b,
                             int64_t rows, int64_t cols, bool relative, dt_dtype dtype,
                             dt_error *err);

/* Returns the milliseconds of one run, in the best of DT_TRIALS; the first trial warms up. `work`
 * queues one run. */
template <typename W>
static dt_status dt_attention_time(float *best_ms, dt_cuda_state *state, W work, dt_error *err)
{
    cudaEvent_t begin = NULL, end = NULL;
    dt_status st = DT_OK;
    float ms;

    DT_TRY(dt_cuda_check(cudaEventCreate(&begin), "timing attention", err));
    DT_TRY(dt_cuda_check(cudaEventCreate(&end), "timing attention", err));
    for (int i = 0; i <= DT_TRIALS; i++) {
        DT_TRY(dt_cuda_check(cudaEventRecord(begin, state->stream), "timing attention", err));
        for (int run = 0; run < DT_RUNS; run++)
            DT_TRY(work());
        DT_TRY(dt_cuda_check(cudaEventRecord(end, state->stream), "timing attention", err));
        DT_TRY(dt_cuda_check(cudaEventSynchronize(end), "timing attention", err));
        DT_TRY(dt_cuda_check(cudaEventElapsedTime(&ms, begin, end), "timing attention", err));
        if (i == 1 || (i > 1 && ms / DT_RUNS < *best_ms))
            *best_ms = ms / DT_RUNS;
    }
out:
    if (begin != NULL)
        cudaEventDestroy(begin);
    if (end != NULL)
        cudaEventDestroy(end);
    return st;
}

/* tile: loads tiles of 64 rows into shared memory, and multiplies them on the tensor cores.
 *
 * A tile has 64 rows of D elements of 16 bits. Chunks of 8 elements (16 bytes) are swizzled: chunk c of row
 * r is stored at the position of chunk c ^ (r % 8), so that the same chunk of eight rows, which ldmatrix
 * reads at once, is in eight different groups of banks.
 *
 * The product is mma.m16n8k16 (PTX ISA, sm_80 and newer). Lane l of a 16x8 accumulator holds columns 2(l%4)
 * and +1 of rows l/4 (elements 0, 1) and l/4 + 8 (elements 2, 3).
 */

#define DT_TILE         64
#define DT_TILE_THREADS 128

/* Size in bytes. */
template <int D> constexpr int DT_TILE_BYTES = DT_TILE *D * 2;

/* The position of a thread while all threads of the block copy successive tiles, each of 64 rows of
 * a matrix; rows from `limit` on become zero. A thread copies the same chunk of every row that it
 * copies: one pointer advances through the matrix, and its destination within a tile is constant. */
template <typename T, int D> struct dt_tile_walk {
    static constexpr int CHUNKS = D / 8,
                         ROWS = DT_TILE_THREADS / CHUNKS; /* rows that all threads copy at once */

    const T *from; /* this thread's first element in the next tile */
    int64_t step;  /* elements, to this thread's next row */
    int left;      /* rows from there to the limit; 0 or less: none */
    unsigned to;   /* destination within a tile, bytes */
};

/* Starts at row `first`. limit - first must fit an int. */
template <typename T, int D>
__device__ inline dt_tile_walk<T, D> dt_tile_walk_from(const T *matrix, int64_t stride,
                                                       int64_t first, int64_t limit)
{
    typedef dt_tile_walk<T, D> walk;
    int row = (int)threadIdx.x / walk::CHUNKS, chunk = (int)threadIdx.x % walk::CHUNKS;
    walk w;

    w.from = matrix + (first + row) * stride + chunk * 8;
    w.step = stride * walk::ROWS;
    w.left = (int)(limit - first) - row;
    w.to = (unsigned)(row * D * 2 + ((chunk ^ (row & 7)) << 4)); /* ROWS is a multiple of 8 */
    return w;
}

/* Queues the copy of the next tile to `tile`. */
template <typename T, int D>
__device__ inline void dt_tile_load(dt_shared tile, dt_tile_walk<T, D> &w)
{
    constexpr int ROWS = dt_tile_walk<T, D>::ROWS;

#pragma unroll
    for (int i = 0; i < DT_TILE; i += ROWS) {
        dt_ptx_copy_16(tile + w.to + (unsigned)(i * D * 2), w.from, i < w.left);
        w.from += w.step;
    }
    w.left -= DT_TILE;
}

/* --- fragments. A lane passes one row and chunk to ldmatrix. Its address for another piece of the
 * tile is this place moved by groups of eight rows, an addition, and by pairs of chunks, an
 * exclusive or on the bits of the swizzle: tiles start at multiples of 128 bytes. */

/* Return the lane's place in a left operand (rows lane % 16, the right half of the columns for
 * lanes from 16 on), which is also its place in an operand whose rows are the depth of a product. */
template <int D> __device__ inline unsigned dt_lane_of_left()
{
    int lane = (int)threadIdx.x % 32;

    return (unsigned)(lane % 16 * D * 2 + ((lane / 16 ^ lane % 8) << 4));
}

/* Returns the lane's place in an operand whose rows are the columns of a product. */
template <int D> __device__ inline unsigned dt_lane_of_rows()
{
    int lane = (int)threadIdx.x % 32;

    return (unsigned)((lane / 16 * 8 + lane % 8) * D * 2 + ((lane / 8 % 2 ^ lane % 8) << 4));
}

/* Moves a place. row: a multiple of 8; col: a multiple of 16. */
template <int D> __device__ inline dt_shared dt_tile_piece(dt_shared place, int row, int col)
{
    return (place ^ (dt_shared)(col / 8 % 8 << 4)) + (dt_shared)(row * D * 2 + col / 64 * 128);
}

/* Loads a left operand: rows row .. row+15, columns col .. col+15 of the tile. */
template <int D> __device__ inline dt_frag dt_frag_left(dt_shared place, int row, int col)
{
    return dt_ldmatrix(dt_tile_piece<D>(place, row, col));
}

/* Loads the right operands of two neighbouring products, if the tile's rows are the result's
 * columns: result columns n .. n+15, depth col .. col+15. Registers 0, 1 belong to the first
 * product. */
template <int D> __device__ inline dt_frag dt_frag_rows(dt_shared place, int n, int col)
{
    return dt_ldmatrix(dt_tile_piece<D>(place, n, col));
}

/* The same if the tile's columns are the result's columns: depth row .. row+15, result columns n ..
 * n+15. */
template <int D> __device__ inline dt_frag dt_frag_cols(dt_shared place, int row, int n)
{
    return dt_ldmatrix_transposed(dt_tile_piece<D>(place, row, n));
}

__device__ inline uint32_t dt_pack(float low, float high, __nv_bfloat16)
{
    __nv_bfloat162 both = __floats2bfloat162_rn(low, high);

    return *(uint32_t *)&both;
}

__device__ inline uint32_t dt_pack(float low, float high, __half)
{
    __half2 both = __floats2half2_rn(low, high);

    return *(uint32_t *)&both;
}

/* Converts two neighbouring accumulators (16x16 together) to a left operand. */
template <typename T> __device__ inline dt_frag dt_frag_of(const float (&a)[4], const float (&b)[4])
{
    dt_frag f;

    f.r[0] = dt_pack(a[0], a[1], T());
    f.r[1] = dt_pack(a[2], a[3], T());
    f.r[2] = dt_pack(b[0], b[1], T());
    f.r[3] = dt_pack(b[2], b[3], T());
    return f;
}

/* c (16 x 16) += left * the two right operands. */
template <typename T>
__device__ inline void dt_mma_pair(float (&c0)[4], float (&c1)[4], const dt_frag &left,
                                   const dt_frag &right)
{
    dt_mma(c0, left, right.r[0], right.r[1], T());
    dt_mma(c1, left, right.r[2], right.r[3], T());
}

#endif
