/* Which of dtrun's own kernels an emulated card runs: those for sm_90a are compared with those for
 * sm_80 on the data of the step, and used if they were found to be better, or if requested.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

extern "C" {
#include <cmocka.h>
}

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "emulator.h"
#include "engine/device/device_cuda.h"
#include "engine/ops/cuda/cuda_int.cuh"
#include "engine/ops/cuda/product.cuh"
#include "engine/ops/cuda/tuned.h"

#define B     8 /* with T: just as many rows as a trial needs */
#define T     128
#define D     64
#define KEY   "wgmma 1; attention forward 8 x 128 x 1/1 x 64 causal BF16"
#define ELEMS ((size_t)B * T * D)

extern "C" const dt_cuda_entry dt_cuda_entry_1;

static char cache[64];

struct results {
    __nv_bfloat16 out[ELEMS];
    float lse[B * T];
};

static int start(void **state)
{
    snprintf(cache, sizeof(cache), "/tmp/dtrun-attention-XXXXXX");
    assert_non_null(mkdtemp(cache));
    setenv("XDG_CACHE_HOME", cache, 1);
    return 0;
}

static int end(void **state)
{
    return dt_file_remove_tree(cache, NULL) == DT_OK ? 0 : -1;
}

static void *take(dt_device *device, size_t bytes)
{
    dt_error err = DT_ERROR_INIT;
    void *memory;

    assert_int_equal(device->alloc(device, &memory, bytes, &err), DT_OK);
    return memory;
}

/* One call, as if in a separate process. kept: 0, or what was found before. found: what is found
 * now. */
static void forward(results *out, const char *wish, char kept, char *found)
{
    static __nv_bfloat16 qkv[3 * ELEMS];
    dt_attention_args args = {};
    dt_error err = DT_ERROR_INIT;
    char key[DT_TUNED_KEY_MAX];
    dt_device device;
    dt_tuned *tuned;

    for (size_t i = 0; i < 3 * ELEMS; i++)
        qkv[i] = __float2bfloat16_rn((float)((i * 7919 + i / 64 * 31) % 201) / 100 - 1.0f);
    setenv("DTRUN_ATTENTION", wish, 1);
    assert_int_equal(dt_cuda_entry_1.open(&device, 0, false, &err), DT_OK);
    snprintf(key, sizeof(key), "%s " KEY, dt_cuda_products_machine(dt_cuda_of(&device)->products));
    tuned = dt_cuda_products_tuned(dt_cuda_of(&device)->products);
    if (kept != 0)
        dt_tuned_keep(tuned, key, &kept, 1);
    void *x = take(&device, sizeof(qkv)), *y = take(&device, sizeof(out->out)),
         *z = take(&device, sizeof(out->lse));
    dt_tensor in = dt_tensor_3d(x, DT_BF16, B, T, 3 * D), to = dt_tensor_3d(y, DT_BF16, B, T, D);
    dt_tensor lse = dt_tensor_3d(z, DT_F32, B, 1, T);
    dt_qkv heads = dt_qkv_packed(&in, 1);

    args.mask = DT_MASK_CAUSAL;
    assert_int_equal(device.copy_in(&device, x, qkv, sizeof(qkv), &err), DT_OK);
    assert_int_equal(device.ops->attention_forward(&device, &to, &lse, &heads, &args, &err), DT_OK);
    assert_int_equal(device.copy_out(&device, out->out, y, sizeof(out->out), &err), DT_OK);
    assert_int_equal(device.copy_out(&device, out->lse, z, sizeof(out->lse), &err), DT_OK);
    *found = 0;
    (void)dt_tuned_find(tuned, key, found, 1);
    for (void *memory : {x, y, z})
        device.free(&device, memory);
    device.close(&device);
}

static void test_both_agree_and_the_slower_one_is_not_taken(void **state)
{
    static results mma, wgmma, chosen;
    char found;

    forward(&mma, "mma", 0, &found);
    assert_int_equal(found, 0); /* nothing was measured */
    forward(&wgmma, "wgmma", 0, &found);
    assert_int_equal(found, 0);
    assert_memory_not_equal(mma.out, wgmma.out, sizeof(mma.out)); /* sums have another order */
    for (size_t i = 0; i < ELEMS; i++)
        assert_true(fabsf(__bfloat162float(mma.out[i]) - __bfloat162float(wgmma.out[i])) < 1e-2f);
    for (size_t i = 0; i < B * T; i++)
        assert_true(fabsf(mma.lse[i] - wgmma.lse[i]) < 1e-4f);
    forward(&chosen, "own", 0, &found); /* both take the same time on an emulated card */
    assert_int_equal(found, 'o');
    assert_memory_equal(&chosen, &mma, sizeof(mma));
}

static void test_what_was_found_before_is_taken(void **state)
{
    static results wgmma, chosen;
    char found;

    forward(&wgmma, "wgmma", 0, &found);
    forward(&chosen, "own", 'c', &found);
    assert_int_equal(found, 'c');
    assert_memory_equal(&chosen, &wgmma, sizeof(wgmma));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main()
{
    const struct CMUnitTest tests[] = {
        TEST(test_both_agree_and_the_slower_one_is_not_taken),
        TEST(test_what_was_found_before_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
