/* Which GPUs of which nodes a run of a sweep gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runner/sweep/sweep_int.h"

static void test_runs_on_one_machine_get_gpus_in_a_row(void **state)
{
    dt_room_machine machine = {.gpus = 8};

    for (int64_t i = 0; i < 4; i++) {
        dt_room_node node = {.machine = &machine, .needs = 2};

        assert_true(dt_room_find(&node, 1, 1));
        assert_int_equal(node.first, 2 * i);
    }
    assert_false(dt_room_find(&(dt_room_node){.machine = &machine, .needs = 1}, 1, 1));
}

static void test_a_gap_too_small_is_passed_over(void **state)
{
    dt_room_machine machine = {.gpus = 4, .used = {[1] = true}};
    dt_room_node node = {.machine = &machine, .needs = 2};

    assert_true(dt_room_find(&node, 1, 1));
    assert_int_equal(node.first, 2);
    assert_true(machine.used[2] && machine.used[3] && !machine.used[0]);
}

static void test_gpus_before_the_first_that_may_be_had_are_left(void **state)
{
    dt_room_machine machine = {.gpus = 4};
    dt_room_node node = {.machine = &machine, .from = 1, .needs = 2};

    assert_true(dt_room_find(&node, 1, 1));
    assert_int_equal(node.first, 1);
    assert_false(dt_room_find(&node, 1, 1));
}

static void test_nodes_that_are_full_are_passed_over(void **state)
{
    dt_room_machine machines[3] = {{.gpus = 2, .used = {true}}, {.gpus = 2}, {.gpus = 2}};
    dt_room_node nodes[3];

    for (int i = 0; i < 3; i++)
        nodes[i] = (dt_room_node){.machine = &machines[i], .needs = 2};
    assert_true(dt_room_find(nodes, 3, 2));
    assert_true(!nodes[0].chosen && nodes[1].chosen && nodes[2].chosen);
    assert_true(machines[0].used[0] && !machines[0].used[1]);
}

static void test_a_full_node_takes_nothing_of_the_other(void **state)
{
    dt_room_machine machines[2] = {{.gpus = 4}, {.gpus = 4, .used = {false, true, false, true}}};
    dt_room_machine before[2];
    dt_room_node nodes[2] = {{.machine = &machines[0], .needs = 2},
                             {.machine = &machines[1], .needs = 2}};

    memcpy(before, machines, sizeof(before));
    assert_false(dt_room_find(nodes, 2, 2));
    assert_memory_equal(before, machines, sizeof(before));
}

static void test_two_nodes_on_one_machine_share_no_gpu(void **state)
{
    dt_room_machine machine = {.gpus = 2};
    dt_room_node nodes[2] = {{.machine = &machine, .needs = 1}, {.machine = &machine, .needs = 1}};

    assert_true(dt_room_find(nodes, 2, 2));
    assert_int_equal(nodes[0].first, 0);
    assert_int_equal(nodes[1].first, 1);
}

static void test_a_node_without_gpus_has_one_run_where_some_nodes_are_wanted(void **state)
{
    dt_room_machine machines[2] = {{.busy = true}, {0}};
    dt_room_node nodes[2] = {{.machine = &machines[0]}, {.machine = &machines[1]}};

    assert_true(dt_room_find(nodes, 2, 1));
    assert_true(!nodes[0].chosen && nodes[1].chosen);
    machines[1].busy = true;
    assert_false(dt_room_find(nodes, 2, 1));
    assert_true(dt_room_find(nodes, 2, 2)); /* all nodes: processors are shared */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_on_one_machine_get_gpus_in_a_row),
        cmocka_unit_test(test_a_gap_too_small_is_passed_over),
        cmocka_unit_test(test_gpus_before_the_first_that_may_be_had_are_left),
        cmocka_unit_test(test_nodes_that_are_full_are_passed_over),
        cmocka_unit_test(test_a_full_node_takes_nothing_of_the_other),
        cmocka_unit_test(test_two_nodes_on_one_machine_share_no_gpu),
        cmocka_unit_test(test_a_node_without_gpus_has_one_run_where_some_nodes_are_wanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
