/* tile: pieces of 64 rows in shared memory, and the tensor core's products on them.
 *
 * A tile has 64 rows of D elements of 16 bits. Chunks of 8 elements (16 bytes) are swizzled: chunk
 * c of row r lies where chunk c ^ (r % 8) would, so that eight rows of one chunk, which ldmatrix
 * reads at once, lie in eight different groups of banks.
 *
 * The product is mma.m16n8k16 (PTX ISA, sm_80 and newer). Of a 16x8 accumulator lane l holds
 * columns 2(l%4) and +1 of rows l/4 (elements 0, 1) and l/4 + 8 (elements 2, 3).
 */
#ifndef DT_ENGINE_OPS_CUDA_TILE_CUH
#define DT_ENGINE_OPS_CUDA_TILE_CUH

#include "engine/ops/cuda/ptx.cuh"

#define DT_TILE         64
#define DT_TILE_THREADS 128

template <typename T, int D> __device__ inline T *dt_tile_at(T *tile, int row, int chunk)
{
    return tile + row * D + ((chunk ^ (row & 7)) << 3);
}

/* Queues the copy of rows first .. first+63 of a matrix whose rows are `stride` apart; rows from
 * `limit` on become zero. All threads of the block call it. */
template <typename T, int D>
__device__ inline void dt_tile_load(T *tile, const T *matrix, int64_t stride, int64_t first,
                                    int64_t limit)
{
    constexpr int CHUNKS = D / 8;

#pragma unroll
    for (int i = (int)threadIdx.x; i < DT_TILE * CHUNKS; i += DT_TILE_THREADS) {
        int row = i / CHUNKS, chunk = i % CHUNKS;
        bool inside = first + row < limit;
        const T *from = matrix + (inside ? (first + row) * stride + chunk * 8 : 0);

        dt_ptx_copy_16(dt_tile_at<T, D>(tile, row, chunk), from, inside);
    }
}

/* --- fragments */

/* Left operand: rows row .. row+15, columns col .. col+15 of the tile. */
template <typename T, int D> __device__ inline dt_frag dt_frag_left(T *tile, int row, int col)
{
    int lane = (int)threadIdx.x % 32;

    return dt_ldmatrix(dt_tile_at<T, D>(tile, row + lane % 16, col / 8 + lane / 16));
}

/* Right operand of two neighbouring products, where the tile's rows are the result's columns:
 * result columns n .. n+15, depth col .. col+15. Registers 0, 1 are the first product's. */
template <typename T, int D> __device__ inline dt_frag dt_frag_rows(T *tile, int n, int col)
{
    int lane = (int)threadIdx.x % 32;

    return dt_ldmatrix(
        dt_tile_at<T, D>(tile, n + lane / 16 * 8 + lane % 8, col / 8 + lane / 8 % 2));
}

/* The same where the tile's columns are the result's columns: depth row .. row+15, result columns
 * n .. n+15. */
template <typename T, int D> __device__ inline dt_frag dt_frag_cols(T *tile, int row, int n)
{
    int lane = (int)threadIdx.x % 32;

    return dt_ldmatrix_transposed(dt_tile_at<T, D>(tile, row + lane % 16, n / 8 + lane / 16));
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

/* Two neighbouring accumulators (16x16 together) as a left operand. */
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
