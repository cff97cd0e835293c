/* How machines are written in a recipe: items, ranges, hostfiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "recipes/fields/nodes.h"
#include "recipes/fields/values.h"

typedef struct fixture {
    dt_arena arena;
    dt_error err;
    dt_string_list out;
} fixture;

static void open_fixture(fixture *f)
{
    static const dt_error none = DT_ERROR_INIT;

    dt_arena_init(&f->arena, 0);
    f->err = none;
}

/* Compares the expanded list, joined by spaces. */
static void expect_expanded(const char *item, const char *want)
{
    const dt_string_list items = {.items = &item, .count = 1};
    char all[1024] = "";
    int64_t wrong;
    fixture f;

    open_fixture(&f);
    assert_int_equal(dt_nodes_expand(&f.out, &wrong, &items, &f.arena, &f.err), DT_OK);
    for (int64_t i = 0; i < f.out.count; i++)
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i > 0 ? "," : "",
                 f.out.items[i]);
    assert_string_equal(all, want);
    dt_arena_release(&f.arena);
}

static void expect_refused(const char *item, const char *part)
{
    const dt_string_list items = {.items = &item, .count = 1};
    int64_t wrong;
    fixture f;

    open_fixture(&f);
    assert_int_equal(dt_nodes_expand(&f.out, &wrong, &items, &f.arena, &f.err), DT_ERR_RECIPE);
    if (strstr(f.err.message, part) == NULL)
        fail_msg("'%s' says '%s', not '%s'", item, f.err.message, part);
    dt_arena_release(&f.arena);
}

static void test_ranges_become_machines(void **state)
{
    expect_expanded("gpu-a", "gpu-a");
    expect_expanded("gpu[01-03]", "gpu01,gpu02,gpu03");
    expect_expanded("gpu[8-11]", "gpu8,gpu9,gpu10,gpu11");
    expect_expanded("me@r[1,3-4]n[0-1].lan gpus=2",
                    "me@r1n0.lan gpus=2,me@r1n1.lan gpus=2,me@r3n0.lan gpus=2,"
                    "me@r3n1.lan gpus=2,me@r4n0.lan gpus=2,me@r4n1.lan gpus=2");
    expect_expanded("slurm:4", "slurm:4");
    expect_expanded("slurm", "slurm");
}

static void test_invalid_lists_of_machines_are_refused(void **state)
{
    expect_refused("gpu[3-1]", "a span must ascend");
    expect_refused("gpu[]", "expected numbers and spans in the brackets");
    expect_refused("gpu[1", "expected numbers and spans in the brackets");
    expect_refused("gpu[a-b]", "expected numbers and spans in the brackets");
    expect_refused("gpu[1-9999]", "at most 1024");
    expect_refused("gpu[0-999]x[0-9]", "at most 1024 nodes");
    expect_refused("gpu[1,1]", "listed twice");
    expect_refused("-oProxyCommand=x", "not a valid ssh destination");
    expect_refused("a;reboot", "not a valid ssh destination");
    expect_refused("$(reboot)", "not a valid ssh destination");
    expect_refused("a'b", "not a valid ssh destination");
    expect_refused("", "not a valid ssh destination");
    expect_refused("a gpus=x", "expected a number from 1 to 1024");
    expect_refused("a cpus=3", "only 'gpus=N'");
    expect_refused("slurm:0", "after 'slurm:'");
    expect_refused("slurm:x", "after 'slurm:'");
    expect_refused("slurm:12/gpu-a", "after 'slurm:'");
}

static void test_a_machine_may_have_its_own_share(void **state)
{
    dt_node_spec spec;
    fixture f;

    open_fixture(&f);
    assert_int_equal(dt_node_spec_parse(&spec, " me@a  gpus=4 ", &f.arena, &f.err), DT_OK);
    assert_string_equal(spec.destination, "me@a");
    assert_int_equal(spec.gpus, 4);
    assert_int_equal(spec.ranks, -1);
    assert_int_equal(dt_node_spec_parse(&spec, "a slots=8", &f.arena, &f.err), DT_OK);
    assert_int_equal(spec.gpus, 8);
    assert_int_equal(spec.ranks, 8);
    assert_true(spec.slots);
    dt_arena_release(&f.arena);
}

static void test_a_hostfile_is_read_line_by_line(void **state)
{
    static const char text[] = "# two racks\n\n gpu-a slots=8 # left\r\ngpu[1-2]\n";
    char path[] = "/tmp/dt-hostfile-XXXXXX";
    int fd = mkstemp(path);
    fixture f;

    assert_true(fd >= 0);
    close(fd);
    open_fixture(&f);
    assert_int_equal(dt_file_write_atomic(path, text, strlen(text), 0600, &f.err), DT_OK);
    assert_int_equal(dt_nodes_read_hostfile(&f.out, path, &f.arena, &f.err), DT_OK);
    assert_int_equal(f.out.count, 2);
    assert_string_equal(f.out.items[0], "gpu-a slots=8");
    assert_string_equal(f.out.items[1], "gpu[1-2]");
    assert_int_equal(dt_file_write_atomic(path, "#\n", 2, 0600, &f.err), DT_OK);
    assert_int_equal(dt_nodes_read_hostfile(&f.out, path, &f.arena, &f.err), DT_ERR_RECIPE);
    assert_int_equal(unlink(path), 0);
    assert_int_not_equal(dt_nodes_read_hostfile(&f.out, path, &f.arena, &f.err), DT_OK);
    dt_arena_release(&f.arena);
}

static void test_this_machine_is_known_by_its_names(void **state)
{
    char host[256] = "";

    assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
    assert_true(dt_node_is_here("localhost"));
    assert_true(dt_node_is_here("localhost#7"));
    assert_true(dt_node_is_here("127.0.0.1"));
    assert_true(dt_node_is_here(host));
    assert_false(dt_node_is_here("localhost2"));
    assert_false(dt_node_is_here("gpu-a"));
    assert_int_equal(dt_node_slurm_count("slurm:12"), 12);
    assert_int_equal(dt_node_slurm_count("slurm:x"), 0);
    assert_int_equal(dt_node_slurm_count("slurm:4 ranks=2"), 4);
    assert_int_equal(dt_node_slurm_count("slurm ranks=2"), 0);
    assert_true(dt_node_is_slurm("slurm"));
    assert_true(dt_node_is_slurm("slurm:4"));
    assert_true(dt_node_is_slurm("slurm ranks=2"));
    assert_true(dt_node_is_slurm("slurm:4 gpus=1"));
    assert_false(dt_node_is_slurm("slurmy"));
    assert_false(dt_node_is_slurm("slurm-a ranks=2"));
}

static void test_times_are_read_as_people_write_them(void **state)
{
    double s;

    assert_true(dt_text_duration(&s, "90") && s == 90);
    assert_true(dt_text_duration(&s, "1.5h") && s == 5400);
    assert_true(dt_text_duration(&s, "10m") && s == 600);
    assert_true(dt_text_duration(&s, "2d") && s == 172800);
    assert_false(dt_text_duration(&s, "10 m"));
    assert_false(dt_text_duration(&s, "m"));
    assert_false(dt_text_duration(&s, ""));
    assert_true(dt_launcher_lost_seconds(&s, "continue") && s == 0);
    assert_true(dt_launcher_lost_seconds(&s, "stop_after 10m") && s == 600);
    assert_true(dt_launcher_lost_seconds(&s, "stop_after 3650d"));
    assert_false(dt_launcher_lost_seconds(&s, "stop_after 3651d"));
    assert_false(dt_launcher_lost_seconds(&s, "stop_after 0"));
    assert_false(dt_launcher_lost_seconds(&s, "stop_after"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_become_machines),
        cmocka_unit_test(test_invalid_lists_of_machines_are_refused),
        cmocka_unit_test(test_a_machine_may_have_its_own_share),
        cmocka_unit_test(test_a_hostfile_is_read_line_by_line),
        cmocka_unit_test(test_this_machine_is_known_by_its_names),
        cmocka_unit_test(test_times_are_read_as_people_write_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
