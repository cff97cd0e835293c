/* emulated PTX: the instructions of engine/ops/cuda/ptx.cuh. Each lane's part is computed from the
 * values of all lanes (the fragments' layouts are those of the PTX ISA).
 */
#ifndef DT_ENGINE_OPS_CUDA_PTX_CUH
#define DT_ENGINE_OPS_CUDA_PTX_CUH

#include "engine/ops/cuda/cuda_int.cuh"

typedef uintptr_t dt_shared;

static inline dt_shared dt_shared_at(const void *address)
{
    return (dt_shared)address;
}

static inline float dt_exp2(float x)
{
    return x < -126.0f ? 0.0f : exp2f(x);
}

static inline void dt_ptx_copy_16(dt_shared to, const void *from, bool inside)
{
    dt_emulated_copy_16((void *)to, from, inside);
}

static inline void dt_tile_commit()
{
    dt_emulated_copy_commit();
}

template <int LEFT> static inline void dt_tile_wait()
{
    dt_emulated_copy_wait(LEFT);
}

struct dt_frag {
    uint32_t r[4];
};

/* Lane l holds elements 2(l%4) and +1 of row l/4 of each of four 8x8 matrices; lane 8i + j gave the
 * address of row j of matrix i. */
__attribute__((no_sanitize("thread"))) /* the lane that gives the row's address reads it */
static inline dt_frag
dt_emulated_ldmatrix(dt_shared from_row, bool transposed)
{
    const void *address = (const void *)from_row;
    int lane = (int)threadIdx.x % 32, row = lane / 4, col = lane % 4 * 2;
    const unsigned char *all;
    dt_frag f;

    dt_emulated_matrix_row(address);
    all = dt_emulated_exchange_all(&address, sizeof(address), 0xffffffffu, __LINE__);
    for (int i = 0; i < 4; i++) {
        uint16_t element[2];

        for (int e = 0; e < 2; e++) {
            int from = transposed ? col + e : row, at = transposed ? row : col + e;
            const uint16_t *line;

            memcpy(&line, all + (i * 8 + from) * 64, sizeof(line));
            element[e] = line[at];
        }
        f.r[i] = (uint32_t)element[0] | (uint32_t)element[1] << 16;
    }
    return f;
}

static inline dt_frag dt_ldmatrix(dt_shared address)
{
    return dt_emulated_ldmatrix(address, false);
}

static inline dt_frag dt_ldmatrix_transposed(dt_shared address)
{
    return dt_emulated_ldmatrix(address, true);
}

struct dt_emulated_operands {
    uint32_t a[4], b[2];
};

__attribute__((no_sanitize("thread"))) static inline void dt_emulated_mma_operands(
    dt_emulated_operands *all, dt_emulated_operands mine)
{
    const unsigned char *slots =
        dt_emulated_exchange_all(&mine, sizeof(mine), 0xffffffffu, __LINE__);

    for (int i = 0; i < 32; i++)
        memcpy(&all[i], slots + i * 64, sizeof(all[i]));
}

template <typename T> static inline float dt_emulated_half_of(uint32_t both, int which)
{
    T value;

    value.bits = (uint16_t)(both >> (which * 16));
    return dt_to_float(value);
}

/* c (16x8) += a (16x16) b (16x8) */
template <typename T>
static inline void dt_mma(float (&c)[4], const dt_frag &a, uint32_t b0, uint32_t b1, T)
{
    int lane = (int)threadIdx.x % 32;
    dt_emulated_operands mine = {{a.r[0], a.r[1], a.r[2], a.r[3]}, {b0, b1}}, all[32];

    dt_emulated_mma_operands(all, mine);
    for (int e = 0; e < 4; e++) {
        int row = lane / 4 + e / 2 * 8, col = lane % 4 * 2 + e % 2;
        float sum = c[e];

        for (int k = 0; k < 16; k++) {
            const dt_emulated_operands &left = all[row % 8 * 4 + k % 8 / 2];
            const dt_emulated_operands &right = all[col * 4 + k % 8 / 2];

            sum += dt_emulated_half_of<T>(left.a[row / 8 + k / 8 * 2], k % 2) *
                   dt_emulated_half_of<T>(right.b[k / 8], k % 2);
        }
        c[e] = sum;
    }
}

#endif
