/* tile: loads tiles of 64 rows into shared memory, and multiplies them on the tensor cores.
 *
 * A tile has 64 rows of D elements of 16 bits. Chunks of 8 elements (16 bytes) are swizzled: chunk c of row
 * r is stored at the position of chunk c ^ (r % 8), so that the same chunk of eight rows, which ldmatrix
 * reads at once, is in eight different groups of banks.
 *
 * The product is mma.m16n8k16 (PTX ISA, sm_80 and newer). Lane l of a 16x8 accumulator holds columns 2(l%4)
 * and +1 of rows l/4 (elements 0, 1) and l/4 + 8 (elements 2, 3).
 */
#ifndef DT_ENGINE_OPS_CUDA_TILE_CUH
#define DT_ENGINE_OPS_CUDA_TILE_CUH

#include "engine/ops/cuda/ptx.cuh"

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
