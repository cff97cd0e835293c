#include "engine/ops/cpu/product.h"

#if defined(__AMX_BF16__)

#include <cpuid.h>
#include <immintrin.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIDE  DT_CPU_AMX_SIDE
#define PANEL (2 * SIDE) /* columns of a panel of b */
#define CHUNK 128        /* words of k: a panel's part is 16 KiB, for the L1 cache */

#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_TILE_DATA  18
#define CPUID_7_EDX_BF16    (1u << 22)
#define CPUID_7_EDX_TILE    (1u << 24)

static bool offered;

static void ask(void)
{
    const unsigned wanted = CPUID_7_EDX_BF16 | CPUID_7_EDX_TILE;
    unsigned a, b, c, d;

    offered = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & wanted) == wanted &&
              __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl") &&
              __builtin_cpu_supports("avx512bw") &&
              syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILE_DATA) == 0;
}

bool dt_cpu_amx_offered(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, ask);
    return offered;
}

/* Eight registers of 16 rows of 64 bytes. In static memory, because GCC takes the instruction for one that reads
 * 8 bytes, and leaves the rest of a local variable unwritten. */
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} registers = {.palette = 1,
               .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
               .rows = {SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE}};

void dt_cpu_amx_open(void)
{
    _tile_loadconfig(&registers);
}

void dt_cpu_amx_close(void)
{
    _tile_release();
}

/* Multiplies 32 rows of a, or 16 without `both`, with a panel of b. */
static inline __attribute__((always_inline)) void multiply_panel(const dt_cpu_amx_product *x,
                                                                 float *c, const float *a,
                                                                 const float *b, int64_t k,
                                                                 bool accumulate, const bool both)
{
    const int64_t c_row = 4 * x->c_row, a_row = 4 * x->a_row, b_row = 4 * x->b_row;
    float *c1 = c + SIDE * x->c_row;
    const float *a1 = a + SIDE * x->a_row;

    if (accumulate) {
        _tile_loadd(0, c, c_row);
        _tile_loadd(1, c + SIDE, c_row);
        if (both) {
            _tile_loadd(2, c1, c_row);
            _tile_loadd(3, c1 + SIDE, c_row);
        }
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t p = 0; p < k; p += SIDE) {
        _tile_loadd(4, a + p, a_row);
        _tile_loadd(6, b + p * x->b_row, b_row);
        _tile_loadd(7, b + p * x->b_row + SIDE, b_row);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        if (both) {
            _tile_loadd(5, a1 + p, a_row);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, c, c_row);
    _tile_stored(1, c + SIDE, c_row);
    if (both) {
        _tile_stored(2, c1, c_row);
        _tile_stored(3, c1 + SIDE, c_row);
    }
}

static void multiply_chunk(const dt_cpu_amx_product *x, int64_t p, int64_t k)
{
    for (int64_t j = 0; j < x->n; j += PANEL) {
        const float *b = x->b + j / PANEL * x->b_panel + p * x->b_row;
        int64_t i = 0;

        for (; i + 2 * SIDE <= x->m; i += 2 * SIDE)
            multiply_panel(x, x->c + i * x->c_row + j, x->a + i * x->a_row + p, b, k,
                           x->accumulate || p > 0, true);
        if (i < x->m)
            multiply_panel(x, x->c + i * x->c_row + j, x->a + i * x->a_row + p, b, k,
                           x->accumulate || p > 0, false);
    }
}

void dt_cpu_amx_multiply(const dt_cpu_amx_product *product)
{
    for (int64_t p = 0; p < product->k; p += CHUNK)
        multiply_chunk(product, p, product->k - p < CHUNK ? product->k - p : CHUNK);
}

#else

#include "base/error.h"

bool dt_cpu_amx_offered(void)
{
    return false;
}

void dt_cpu_amx_open(void)
{
    DT_ASSERT(dt_cpu_amx_offered());
}

void dt_cpu_amx_close(void)
{
    DT_ASSERT(dt_cpu_amx_offered());
}

void dt_cpu_amx_multiply(const dt_cpu_amx_product *product)
{
    (void)product;
    DT_ASSERT(dt_cpu_amx_offered());
}

#endif
