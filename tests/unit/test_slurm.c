/* Slurm's counts, node names and promised nodes, and states of a job in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runner/transport/slurm/slurm.h"

static void test_counts_are_as_many_as_nodes(void **state)
{
    static const char *const wrong[] = {
        "",     "2",    "2(x3)", "2,2,2",           "2(x2",        "2(x2),", "x2", "2(y2)",
        "-1,2", "2 ,2", "2(x0)", "2(x99999999999)", "9999999999,1"};
    int64_t counts[2];

    (void)state;
    assert_true(dt_slurm_counts(counts, 2, "2(x2)"));
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1], 2);
    assert_true(dt_slurm_counts(counts, 2, "16,4"));
    assert_int_equal(counts[0], 16);
    assert_int_equal(counts[1], 4);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(dt_slurm_counts(counts, 2, wrong[i]));
}

static void test_names_are_hosts_or_places(void **state)
{
    static const char *const neither[] = {
        "slurm",        "slurm:4",      "slurm:/a",         "slurm:x/a",
        "slurm:0/a",    "slurm:12/",    "slurm:12/-w",      "slurm:12/a b",
        "slurm:12/a/b", "slurm:12/a;b", "slurm:4#0",        "slurm:4#5",
        "slurm:4#",     "slurm:4#1x",   "slurm:4#99999999", "slurm:9999999999999999/a",
        "gpu-a",        "gpu-a#2"};
    int64_t number, index;
    const char *host;

    (void)state;
    assert_true(dt_slurm_name_is_host("slurm:12/gpu-a.cluster", &number, &host));
    assert_int_equal(number, 12);
    assert_string_equal(host, "gpu-a.cluster");
    assert_false(dt_slurm_name_is_place("slurm:12/gpu-a", &number, &index));
    assert_true(dt_slurm_name_is_place("slurm:4#2", &number, &index));
    assert_int_equal(number, 4);
    assert_int_equal(index, 1);
    assert_false(dt_slurm_name_is_host("slurm:4#2", &number, &host));
    for (size_t i = 0; i < sizeof(neither) / sizeof(neither[0]); i++) {
        assert_false(dt_slurm_name_is_host(neither[i], &number, &host));
        assert_false(dt_slurm_name_is_place(neither[i], &number, &index));
    }
}

static void test_a_promised_node_has_its_transport_but_no_command(void **state)
{
    const char **argv, *const words[] = {"/bin/true", NULL};
    dt_error err = DT_ERROR_INIT;
    const dt_transport *found;
    dt_lent_nodes nodes;
    dt_arena arena;

    (void)state;
    unsetenv("SLURM_JOB_ID");
    dt_arena_init(&arena, 1024);
    assert_int_equal(dt_transport_slurm.expand(&nodes, 2, &arena, &err), DT_OK);
    assert_int_equal(nodes.count, 2);
    assert_string_equal(nodes.names[1], "slurm:2#2");
    assert_int_equal(nodes.gpus, -1);
    for (int64_t i = 0; i < nodes.count; i++) {
        assert_int_equal(nodes.cores[i], 1);
        assert_int_equal(nodes.ranks[i], 0);
        assert_int_equal(dt_transport_find(&found, nodes.names[i], &err), DT_OK);
        assert_ptr_equal(found, &dt_transport_slurm);
        assert_true(dt_transport_is_lent(nodes.names[i]));
        assert_int_equal(found->check_placed(nodes.names[i], NULL), DT_ERR_UNSUPPORTED);
        assert_int_equal(found->command(&argv, nodes.names[i], words, &arena, NULL),
                         DT_ERR_UNSUPPORTED);
    }
    assert_int_equal(found->check_placed("slurm:12/gpu-a", &err), DT_OK);
    assert_int_equal(found->command(&argv, "slurm:12/gpu-a", words, &arena, &err), DT_OK);
    assert_int_equal(found->expand(&nodes, 0, &arena, &err), DT_ERR_RECIPE);
    dt_arena_release(&arena);
}

static void test_only_a_lender_takes_a_destination(void **state)
{
    static const char *const nodes[] = {
        "localhost",  "localhost#2", "local",   "ssh",      "ssh:4",  "gpu-a",         "slurmy",
        "root@slurm", "slurm:0",     "slurm:x", "slurm:4x", "slurm:", "slurm:12/gpu-a"};
    int64_t count;

    (void)state;
    assert_ptr_equal(dt_transport_lender(&count, "slurm"), &dt_transport_slurm);
    assert_int_equal(count, 0);
    assert_ptr_equal(dt_transport_lender(&count, "slurm:4"), &dt_transport_slurm);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
        assert_null(dt_transport_lender(&count, nodes[i]));
    assert_false(dt_transport_is_lent("localhost#2"));
    assert_false(dt_transport_is_lent("gpu-a"));
}

static void expect_words(const char *job_state, const char *reason, const char *words)
{
    dt_slurm_job job = {.job = 12};
    dt_strbuf text;

    memcpy(job.state, job_state, strlen(job_state) + 1);
    memcpy(job.reason, reason, strlen(reason) + 1);
    dt_strbuf_init(&text);
    dt_slurm_job_words(&text, &job);
    assert_string_equal(text.data, words);
    dt_strbuf_release(&text);
}

static void test_states_are_described_in_words(void **state)
{
    (void)state;
    expect_words("PENDING", "None", "Slurm job 12 waits");
    expect_words("PENDING", "Resources",
                 "Slurm job 12 waits: waiting for free resources (Resources)");
    expect_words("PENDING", "Licenses", "Slurm job 12 waits: Licenses");
    expect_words("SIGNALING", "None", "Slurm job 12 runs"); /* the job has not ended */
    expect_words("CANCELLED", "None", "Slurm job 12 was cancelled (scancel)");
    expect_words("TIMEOUT", "TimeLimit", "Slurm job 12 reached its time limit");
    expect_words("BOOT_FAIL", "None", "Slurm job 12 is over (BOOT_FAIL)");
    expect_words("", "", "Slurm job 12 is over, and Slurm has no record of it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_are_as_many_as_nodes),
        cmocka_unit_test(test_names_are_hosts_or_places),
        cmocka_unit_test(test_a_promised_node_has_its_transport_but_no_command),
        cmocka_unit_test(test_only_a_lender_takes_a_destination),
        cmocka_unit_test(test_states_are_described_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
