/* amx: Intel's matrix unit: whether there is one, and small products of packed operands within one thread.
 *
 * Unit       eight registers, here of 16 rows of 64 bytes each. An instruction adds the product of two registers of
 *            bf16 to one of fp32; it treats subnormal numbers, in operands and sums, as zero
 * Order      of a sum: pairs of k in order, as the instruction adds them; it depends on k alone
 */
#ifndef DT_ENGINE_OPS_CPU_AMX_H
#define DT_ENGINE_OPS_CPU_AMX_H

#include <stdbool.h>
#include <stdint.h>

#define DT_CPU_AMX_SIDE 16 /* rows of a register, and words of 32 bits in a row */

/* Returns whether the processor and the kernel offer AMX to this process. The first call asks the kernel. */
bool dt_cpu_amx_offered(void);

/* Prepares the registers for this thread; dt_cpu_amx_close() gives them back. Between the two calls a thread may
 * compute products. They abort without dt_cpu_amx_offered(). */
void dt_cpu_amx_open(void);
void dt_cpu_amx_close(void);

/* c(m,n) = a(m,k) b(k,n), or c += with `accumulate`. Elements of a and b are words: two bf16 values of k, as in
 * tile_int.h. a: element (i,p) at a[i * a_row + p]; b: element (p,j) at b[j / 32 * b_panel + p * b_row + j % 32].
 * m and k are multiples of DT_CPU_AMX_SIDE, n of 32; rows are fastest if they begin at multiples of 64 bytes. */
typedef struct dt_cpu_amx_product {
    float *c;
    const float *a, *b;
    int64_t m, n, k; /* k: words */
    int64_t c_row, a_row, b_row, b_panel;
    bool accumulate;
} dt_cpu_amx_product;

void dt_cpu_amx_multiply(const dt_cpu_amx_product *product);

#endif
