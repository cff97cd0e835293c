#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "runner/cli/log_tail.h"

static char top[64];
static dt_store *store;
static dt_arena arena;
static dt_run run;
static int64_t bytes_of[8];

static int setup(void **state)
{
    const dt_run row = {.id = "r",
                        .name = "r",
                        .created_ms = 1,
                        .steps_total = 1,
                        .loss = NAN,
                        .valid_loss = NAN,
                        .tokens_per_second = NAN,
                        .recipe_path = "",
                        .recipe_text = "",
                        .recipe_json = "{}",
                        .recipe_hash = "",
                        .exit_code = -1,
                        .reason = ""};
    char path[128];

    snprintf(top, sizeof(top), "/tmp/dtrun-logs.XXXXXX");
    assert_non_null(mkdtemp(top));
    setenv("XDG_STATE_HOME", top, 1);
    snprintf(path, sizeof(path), "%s/dtrun/runs/r/logs", top);
    assert_int_equal(dt_file_make_dirs(path, 0700, NULL), DT_OK);
    assert_int_equal(dt_store_open(&store, NULL, NULL), DT_OK);
    assert_int_equal(dt_store_run_add(store, &row, NULL), DT_OK);
    dt_arena_init(&arena, 0);
    memset(bytes_of, 0, sizeof(bytes_of));
    return 0;
}

static int teardown(void **state)
{
    dt_store_close(store);
    dt_arena_release(&arena);
    return dt_file_remove_tree(top, NULL) != DT_OK;
}

static void have(int64_t attempt, int64_t node, const char *name, int64_t rank)
{
    const dt_node row = {node, name, "running", 0};
    const dt_rank its = {.rank = rank,
                         .node = node,
                         .device = "cpu",
                         .state = "ready",
                         .exit_code = -1,
                         .exit_signal = -1,
                         .log_bytes = bytes_of[rank]};

    assert_int_equal(dt_store_node_set(store, "r", attempt, &row, NULL), DT_OK);
    assert_int_equal(dt_store_rank_set(store, "r", attempt, &its, NULL), DT_OK);
    assert_int_equal(dt_store_run_find(store, &run, "r", &arena, NULL), DT_OK);
}

static void say(int64_t attempt, int64_t node, const char *name, int64_t rank, int second)
{
    char path[128], line[64];
    FILE *file;

    snprintf(path, sizeof(path), "%s/dtrun/runs/r/logs/rank-%d.log", top, (int)rank);
    snprintf(line, sizeof(line), "2026-11-21T09:50:%02d.000Z of %d\n", second, (int)rank);
    file = fopen(path, "a");
    assert_non_null(file);
    fputs(line, file);
    fclose(file);
    bytes_of[rank] += (int64_t)strlen(line);
    have(attempt, node, name, rank);
}

/* "1@a:07 ": rank, node and second of each line. */
static const char *read_all(dt_log_tail *tail, dt_log_amount amount, int64_t most)
{
    static char text[512];
    dt_log_line *lines;
    int64_t count;

    text[0] = '\0';
    assert_int_equal(
        dt_log_tail_read(tail, &lines, &count, amount, most, store, &run, &arena, NULL), DT_OK);
    for (int64_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d@%s:%.2s ",
                 (int)lines[i].rank, lines[i].node, lines[i].text + 17);
    return text;
}

static void test_lines_of_nodes_are_merged_by_time(void **state)
{
    dt_log_tail tail;

    say(1, 0, "a", 0, 1);
    say(1, 1, "b", 1, 2);
    say(1, 0, "a", 0, 3);
    assert_int_equal(dt_log_tail_init(&tail, store, &run, -1, &arena, NULL), DT_OK);
    assert_true(tail.several_nodes);
    assert_string_equal(read_all(&tail, DT_LOG_LAST, 2), "1@b:02 0@a:03 ");
}

static void test_a_line_that_comes_late_still_stands_before_later_ones(void **state)
{
    dt_log_tail tail;

    have(1, 0, "a", 0);
    have(1, 1, "b", 1);
    assert_int_equal(dt_log_tail_init(&tail, store, &run, -1, &arena, NULL), DT_OK);
    assert_string_equal(read_all(&tail, DT_LOG_LAST, 10), "");
    say(1, 0, "a", 0, 5);
    say(1, 0, "a", 0, 9);
    assert_string_equal(read_all(&tail, DT_LOG_LIVE, 0), "");
    say(1, 1, "b", 1, 4);
    say(1, 1, "b", 1, 10);
    assert_string_equal(read_all(&tail, DT_LOG_LIVE, 0), "");
    assert_string_equal(read_all(&tail, DT_LOG_LIVE, 0), "1@b:04 0@a:05 0@a:09 ");
    assert_string_equal(read_all(&tail, DT_LOG_LIVE, 0), "1@b:10 ");
    say(1, 0, "a", 0, 11);
    assert_string_equal(read_all(&tail, DT_LOG_REST, 0), "0@a:11 ");
    assert_string_equal(read_all(&tail, DT_LOG_REST, 0), "");
}

static void test_a_new_attempt_brings_ranks_and_other_nodes(void **state)
{
    dt_log_tail tail;
    int64_t attempt;

    say(1, 0, "a", 0, 1);
    say(1, 1, "b", 1, 1);
    assert_int_equal(dt_log_tail_init(&tail, store, &run, -1, &arena, NULL), DT_OK);
    assert_string_equal(read_all(&tail, DT_LOG_LAST, 0), "0@a:01 1@b:01 ");
    assert_int_equal(dt_store_run_set_state(store, "r", DT_RUN_FAILED, 1, "it broke", 2, NULL),
                     DT_OK);
    assert_int_equal(dt_store_attempt_add(store, "r", 0, 1, "{}", "", 2, &attempt, NULL), DT_OK);
    assert_int_equal(attempt, 2);
    say(2, 0, "c", 0, 2);
    say(2, 0, "c", 2, 3);
    assert_string_equal(read_all(&tail, DT_LOG_REST, 0), "0@c:02 2@c:03 ");
    /* and who comes later sees those of the attempt before too */
    assert_int_equal(dt_log_tail_init(&tail, store, &run, -1, &arena, NULL), DT_OK);
    assert_string_equal(read_all(&tail, DT_LOG_LAST, 0), "0@c:01 1@b:01 0@c:02 2@c:03 ");
    assert_int_equal(dt_log_tail_init(&tail, store, &run, 1, &arena, NULL), DT_OK);
    assert_string_equal(read_all(&tail, DT_LOG_LAST, 0), "1@b:01 ");
    assert_int_equal(dt_log_tail_init(&tail, store, &run, 5, &arena, NULL), DT_ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines_of_nodes_are_merged_by_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_line_that_comes_late_still_stands_before_later_ones,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_new_attempt_brings_ranks_and_other_nodes, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
