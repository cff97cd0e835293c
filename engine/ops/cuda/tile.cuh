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

/* In bytes. */
template <int D> constexpr int DT_TILE_BYTES = DT_TILE *D * 2;

/* How a thread copies tiles, one after another, each of 64 rows of a matrix; rows from `limit` on become
 * zero. A thread copies the same chunk of every row that it copies: one pointer walks down the matrix, and
 * where it goes in a tile is a constant. All threads of the block take part. */
template <typename T, int D> struct dt_tile_walk {
    static constexpr int CHUNKS = D / 8,
                         ROWS = DT_TILE_THREADS / CHUNKS; /* of all threads at once */

    const T *from; /* in the first row of the next tile that is this thread's */
    int64_t step;  /* elements, to its next row */
    int left;      /* rows from there to the limit; 0 or less: none */
    unsigned to;   /* in a tile, bytes */
};

/* From row `first` on. limit - first fits an int. */
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

/* --- fragments. A lane names a row and a chunk of it to ldmatrix; the pieces that it reads of a tile are
 * that place, moved by whole rows of eight, which is an addition, and by whole pairs of chunks, which is
 * an exclusive or of bits that the swizzle has: tiles begin at multiples of 128 bytes. */

/* In a left operand (rows lane % 16, the right half of columns for lanes from 16 on), and in one whose
 * rows are the depth of a product. */
template <int D> __device__ inline unsigned dt_lane_of_left()
{
    int lane = (int)threadIdx.x % 32;

    return (unsigned)(lane % 16 * D * 2 + ((lane / 16 ^ lane % 8) << 4));
}

/* In one whose rows are a product's columns. */
template <int D> __device__ inline unsigned dt_lane_of_rows()
{
    int lane = (int)threadIdx.x % 32;

    return (unsigned)((lane / 16 * 8 + lane % 8) * D * 2 + ((lane / 8 % 2 ^ lane % 8) << 4));
}

/* row: a multiple of 8; col: of 16. */
template <int D> __device__ inline dt_shared dt_tile_piece(dt_shared place, int row, int col)
{
    return (place ^ (dt_shared)(col / 8 % 8 << 4)) + (dt_shared)(row * D * 2 + col / 64 * 128);
}

/* Left operand: rows row .. row+15, columns col .. col+15 of the tile. */
template <int D> __device__ inline dt_frag dt_frag_left(dt_shared place, int row, int col)
{
    return dt_ldmatrix(dt_tile_piece<D>(place, row, col));
}

/* Right operand of two neighbouring products, where the tile's rows are the result's columns:
 * result columns n .. n+15, depth col .. col+15. Registers 0, 1 are the first product's. */
template <int D> __device__ inline dt_frag dt_frag_rows(dt_shared place, int n, int col)
{
    return dt_ldmatrix(dt_tile_piece<D>(place, n, col));
}

/* The same where the tile's columns are the result's columns: depth row .. row+15, result columns
 * n .. n+15. */
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
