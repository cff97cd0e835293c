/* ptx: wraps instructions that CUDA C++ has no function for (PTX ISA, sm_80 and newer). The copies
 * have a memory clobber: the compiler does not move reads or writes across them. */
#ifndef DT_ENGINE_OPS_CUDA_PTX_CUH
#define DT_ENGINE_OPS_CUDA_PTX_CUH

#include "engine/ops/cuda/cuda_int.cuh"

/* An address in shared memory, in bytes; in the emulated GPU, as wide as a pointer. */
typedef unsigned dt_shared;

__device__ inline dt_shared dt_shared_at(const void *address)
{
    return (dt_shared)__cvta_generic_to_shared(address);
}

/* 2^x, within 2 units of the last place; 0 if the result is too small for a normal number. */
__device__ inline float dt_exp2(float x)
{
    float y;

    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
    return y;
}

/* Queues a copy of 16 bytes into shared memory; if `inside` is false, writes zeros and reads
 * nothing. */
__device__ inline void dt_ptx_copy_16(dt_shared to, const void *from, bool inside)
{
    int bytes = inside ? 16 : 0;

    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

__device__ inline void dt_tile_commit()
{
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

/* Waits until at most `LEFT` of the committed groups are still running. */
template <int LEFT> __device__ inline void dt_tile_wait()
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(LEFT) : "memory");
}

/* Four registers, each two elements of 16 bits. */
struct dt_frag {
    uint32_t r[4];
};

__device__ inline dt_frag dt_ldmatrix(dt_shared from)
{
    dt_frag f;

    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
                 : "r"(from));
    return f;
}

__device__ inline dt_frag dt_ldmatrix_transposed(dt_shared from)
{
    dt_frag f;

    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
                 : "r"(from));
    return f;
}

__device__ inline void dt_mma(float (&c)[4], const dt_frag &a, uint32_t b0, uint32_t b1,
                              __nv_bfloat16)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b0), "r"(b1));
}

__device__ inline void dt_mma(float (&c)[4], const dt_frag &a, uint32_t b0, uint32_t b1, __half)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b0), "r"(b1));
}

#endif
