/* resources: reports what the machine has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <unistd.h>

#include "base/resources.h"

static void test_memory_is_positive_and_within_the_machine(void **state)
{
    int64_t bytes = 0, whole = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);

    assert_int_equal(dt_resources_memory(&bytes, NULL), DT_OK);
    assert_true(bytes > 0);
    assert_true(bytes <= whole);
}

static void test_cores_follow_the_affinity_of_the_process(void **state)
{
    cpu_set_t all, one;
    int first = 0;

    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    assert_int_equal(dt_resources_cores(), CPU_COUNT(&all));
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(dt_resources_cores(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void test_a_disk_that_is_not_there_is_an_error(void **state)
{
    dt_error err = DT_ERROR_INIT;
    int64_t bytes;

    assert_int_equal(dt_resources_disk(&bytes, "/", NULL), DT_OK);
    assert_int_equal(dt_resources_disk(&bytes, "/no/such/folder", &err), DT_ERR_IO);
    assert_string_equal(err.message, "cannot tell the free space at '/no/such/folder': "
                                     "No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_positive_and_within_the_machine),
        cmocka_unit_test(test_cores_follow_the_affinity_of_the_process),
        cmocka_unit_test(test_a_disk_that_is_not_there_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
