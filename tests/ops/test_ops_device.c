/* The CPU device: memory, arenas, threads, and the choice of instruction set. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/device/device.h"
#include "engine/ops/ops.h"

static void test_memory_is_zeroed_and_aligned(void **state)
{
    const size_t sizes[] = {0, 1, 63, 4097, (size_t)3 << 20};
    dt_error err = DT_ERROR_INIT;
    dt_device device;

    assert_int_equal(dt_device_open_cpu(&device, 1, &err), DT_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *memory = NULL;

        assert_int_equal(device.alloc(&device, (void **)&memory, sizes[i], &err), DT_OK);
        assert_int_equal((uintptr_t)memory % 64, 0);
        for (size_t b = 0; b < sizes[i]; b++)
            assert_int_equal(memory[b], 0);
        if (sizes[i] > 0)
            memset(memory, 0xff, sizes[i]); /* the next block must not inherit it */
        device.free(&device, memory);
    }
    dt_device_close(&device);
}

static void test_memory_that_is_not_there_is_refused_with_its_size(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_device device;
    void *memory = &device;

    assert_int_equal(dt_device_open_cpu(&device, 1, &err), DT_OK);
    assert_int_equal(device.alloc(&device, &memory, SIZE_MAX - 1, &err), DT_ERR_NOMEM);
    assert_null(memory);
    assert_non_null(strstr(err.message, " MB of memory"));
    dt_device_close(&device);
}

static void test_copies_go_both_ways(void **state)
{
    const char text[] = "there and back";
    char back[sizeof text] = "";
    dt_error err = DT_ERROR_INIT;
    dt_device device;
    void *memory;

    assert_int_equal(dt_device_open_cpu(&device, 1, &err), DT_OK);
    assert_int_equal(device.alloc(&device, &memory, sizeof text, &err), DT_OK);
    assert_int_equal(device.copy_in(&device, memory, text, sizeof text, &err), DT_OK);
    assert_int_equal(device.copy_out(&device, back, memory, sizeof text, &err), DT_OK);
    assert_int_equal(device.synchronize(&device, &err), DT_OK);
    assert_string_equal(back, text);
    device.free(&device, memory);
    dt_device_close(&device);
}

static void test_arena_hands_out_aligned_pieces_up_to_its_capacity(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_device_arena arena;
    dt_device device;
    unsigned char *first, *second, *last;

    assert_int_equal(dt_device_open_cpu(&device, 1, &err), DT_OK);
    assert_int_equal(dt_device_arena_open(&arena, &device, 64 + 64 + 10, &err), DT_OK);
    first = dt_device_arena_take(&arena, 1);
    second = dt_device_arena_take(&arena, 64);
    last = dt_device_arena_take(&arena, 10); /* its size need not be a multiple of a line */
    assert_int_equal(second - first, 64);
    assert_int_equal(last - second, 64);
    assert_int_equal((uintptr_t)first % 64, 0);
    dt_device_arena_close(&arena);
    dt_device_arena_close(&arena); /* a closed device is zeroed */
    dt_device_close(&device);
}

static void test_thread_counts_out_of_range_are_refused(void **state)
{
    const int counts[] = {-1, 100000};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        dt_error err = DT_ERROR_INIT;
        dt_device device;

        assert_int_equal(dt_device_open_cpu(&device, counts[i], &err), DT_ERR_USAGE);
        assert_non_null(strstr(err.message, "threads: expected 1 to"));
        dt_device_close(&device); /* a device that did not open is zeroed */
    }
}

static void test_no_thread_count_means_the_cores_of_this_process(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_device device;

    assert_int_equal(dt_device_open_cpu(&device, 0, &err), DT_OK);
    assert_in_range(device.threads, 1, 1024);
    assert_string_equal(device.name, "cpu");
    dt_device_close(&device);
}

static void test_instruction_set_can_be_forced_down(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_device device;

    assert_int_equal(setenv("DTRUN_CPU_ISA", "x86-64", 1), 0);
    assert_int_equal(dt_device_open_cpu(&device, 1, &err), DT_OK);
    assert_ptr_equal(device.ops, &dt_ops_cpu);
    dt_device_close(&device);
    unsetenv("DTRUN_CPU_ISA");
}

static void test_unknown_instruction_set_is_refused_by_name(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_device device;

    assert_int_equal(setenv("DTRUN_CPU_ISA", "sse9", 1), 0);
    assert_int_equal(dt_device_open_cpu(&device, 1, &err), DT_ERR_USAGE);
    assert_non_null(strstr(err.message, "'sse9'"));
    unsetenv("DTRUN_CPU_ISA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_zeroed_and_aligned),
        cmocka_unit_test(test_memory_that_is_not_there_is_refused_with_its_size),
        cmocka_unit_test(test_copies_go_both_ways),
        cmocka_unit_test(test_arena_hands_out_aligned_pieces_up_to_its_capacity),
        cmocka_unit_test(test_thread_counts_out_of_range_are_refused),
        cmocka_unit_test(test_no_thread_count_means_the_cores_of_this_process),
        cmocka_unit_test(test_instruction_set_can_be_forced_down),
        cmocka_unit_test(test_unknown_instruction_set_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
