#include "engine/ops/cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static bool always(void)
{
    return true;
}

#if defined(__x86_64__)

extern const dt_ops dt_ops_cpu_avx2, dt_ops_cpu_avx512, dt_ops_cpu_avx512_bf16;

/* Tests for the features that some compilers' __builtin_cpu_supports does not know. */
static bool has_f16c_movbe_lzcnt(void)
{
    const unsigned basic = bit_F16C | bit_MOVBE;
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & basic) == basic &&
           __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & bit_LZCNT) != 0;
}

/* has_avx2: every feature of x86-64-v3, which the avx2 build requires. has_avx512: x86-64-v4. */
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           has_f16c_movbe_lzcnt();
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

static bool has_avx512_bf16(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512bf16");
}

#endif

/* The builds, fastest first. */
static const struct {
    const char *name;
    const dt_ops *ops;
    bool (*supported)(void);
} isas[] = {
#if defined(__x86_64__)
    {"avx512_bf16", &dt_ops_cpu_avx512_bf16, has_avx512_bf16},
    {"avx512", &dt_ops_cpu_avx512, has_avx512},
    {"avx2", &dt_ops_cpu_avx2, has_avx2},
#endif
    {"x86-64", &dt_ops_cpu, always},
};

#define ISA_COUNT (sizeof isas / sizeof isas[0])

dt_status dt_cpu_isa_pick(const dt_ops **ops, const char **name, dt_error *err)
{
    const char *asked = getenv("DTRUN_CPU_ISA");
    size_t i = 0;

    *ops = NULL;
    *name = NULL;
    if (asked == NULL || asked[0] == '\0') {
        while (!isas[i].supported())
            i++; /* terminates: the last build is always supported */
    } else {
        while (i < ISA_COUNT && strcmp(asked, isas[i].name) != 0)
            i++;
        if (i == ISA_COUNT)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "unknown instruction set '%s' in DTRUN_CPU_ISA: use x86-64, avx2, "
                           "avx512 or avx512_bf16, or leave it unset",
                           asked);
        if (!isas[i].supported())
            return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                           "this processor cannot run '%s', asked for in DTRUN_CPU_ISA: leave it "
                           "unset",
                           asked);
    }
    *ops = isas[i].ops;
    *name = isas[i].name;
    return DT_OK;
}
