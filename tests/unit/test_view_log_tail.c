#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store_support.h"

#include "base/file.h"
#include "runner/supervisor/session/session_int.h"
#include "runner/view/follow/follow.h"

static test_store *t;
static dt_run run;
static int64_t bytes_of[8];

static int setup(void **state)
{
    char path[128];

    if (test_store_setup(state) != 0)
        return -1;
    t = *state;
    setenv("XDG_STATE_HOME", t->folder, 1);
    snprintf(path, sizeof(path), "%s/dtrun/runs/r/logs", t->folder);
    assert_good(t, dt_file_make_dirs(path, 0700, &t->err));
    test_store_run(t, "r", "r");
    memset(bytes_of, 0, sizeof(bytes_of));
    return 0;
}

static void have(int64_t attempt, int64_t node, const char *name, int64_t rank)
{
    const dt_node row = {.node = node, .name = name, .state = "running"};
    const dt_rank its = {.rank = rank,
                         .node = node,
                         .device = "cpu",
                         .state = "ready",
                         .exit_code = -1,
                         .exit_signal = -1,
                         .log_bytes = bytes_of[rank]};

    assert_good(t, dt_store_node_set(t->store, "r", attempt, &row, &t->err));
    assert_good(t, dt_store_rank_set(t->store, "r", attempt, &its, &t->err));
    assert_good(t, dt_store_run_find(t->store, &run, "r", &t->arena, &t->err));
}

static void say(int64_t attempt, int64_t node, const char *name, int64_t rank, int second)
{
    char path[128], line[64];
    FILE *file;

    snprintf(path, sizeof(path), "%s/dtrun/runs/r/logs/rank-%d.log", t->folder, (int)rank);
    snprintf(line, sizeof(line), "2026-11-21T09:50:%02d.000Z of %d\n", second, (int)rank);
    file = fopen(path, "a");
    assert_non_null(file);
    fputs(line, file);
    fclose(file);
    bytes_of[rank] += (int64_t)strlen(line);
    have(attempt, node, name, rank);
}

/* Returns "1@a:07 ", the rank, node and second of each line. */
static const char *read_all(dt_log_tail *tail, dt_log_amount amount, int64_t most)
{
    static char text[512];
    dt_log_line *lines;
    int64_t count;

    text[0] = '\0';
    assert_good(t, dt_log_tail_read(tail, &lines, &count, amount, most, t->store, &run, &t->arena,
                                    &t->err));
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
    assert_good(t, dt_log_tail_init(&tail, t->store, &run, -1, &t->arena, &t->err));
    assert_true(tail.several_nodes);
    assert_string_equal(read_all(&tail, DT_LOG_LAST, 2), "1@b:02 0@a:03 ");
}

static void test_a_late_line_is_ordered_before_later_ones(void **state)
{
    dt_log_tail tail;

    have(1, 0, "a", 0);
    have(1, 1, "b", 1);
    assert_good(t, dt_log_tail_init(&tail, t->store, &run, -1, &t->arena, &t->err));
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
    assert_good(t, dt_log_tail_init(&tail, t->store, &run, -1, &t->arena, &t->err));
    assert_string_equal(read_all(&tail, DT_LOG_LAST, 0), "0@a:01 1@b:01 ");
    assert_good(t, dt_store_run_set_state(t->store, "r", DT_RUN_FAILED, 1, "it broke", 2, &t->err));
    assert_good(t, dt_store_attempt_add(t->store, "r", 0, 1, "{}", "", 2, &attempt, &t->err));
    assert_int_equal(attempt, 2);
    say(2, 0, "c", 0, 2);
    say(2, 0, "c", 2, 3);
    assert_string_equal(read_all(&tail, DT_LOG_REST, 0), "0@c:02 2@c:03 ");
    /* a later reader also sees those of the previous attempt */
    assert_good(t, dt_log_tail_init(&tail, t->store, &run, -1, &t->arena, &t->err));
    assert_string_equal(read_all(&tail, DT_LOG_LAST, 0), "0@c:01 1@b:01 0@c:02 2@c:03 ");
    assert_good(t, dt_log_tail_init(&tail, t->store, &run, 1, &t->arena, &t->err));
    assert_string_equal(read_all(&tail, DT_LOG_LAST, 0), "1@b:01 ");
    assert_fails(t, dt_log_tail_init(&tail, t->store, &run, 5, &t->arena, &t->err), DT_ERR_USAGE,
                 "5");
}

/* The kept log of a rank is limited: the oldest part is removed, and the rest is read from its first whole line. */
static void test_of_a_long_log_the_oldest_is_dropped(void **state)
{
    enum { PIECE = 1 << 20, LINE = 64 };
    dt_rank_log log = {.fd = -1};
    char folder[128], path[160], *piece = malloc(PIECE);
    dt_log_line *lines;
    dt_log_tail tail;
    struct stat info;
    int64_t count;

    snprintf(folder, sizeof(folder), "%s/dtrun/runs/r", t->folder);
    snprintf(path, sizeof(path), "%s/logs/rank-0.log", folder);
    memset(piece, 'x', PIECE);
    for (int at = 0; at < PIECE; at += LINE) {
        memcpy(piece + at, "2026-11-21T09:50:00.000Z ", 25);
        piece[at + LINE - 1] = '\n';
    }
    for (int i = 0; i < 100; i++) {
        assert_good(t, dt_rank_log_write(&log, folder, 0, piece, PIECE, &t->err));
        dt_rank_log_settle(&log, true);
    }
    assert_int_equal(log.stored_bytes, 100 * PIECE);
    assert_int_equal(fstat(log.fd, &info), 0);
    dt_rank_log_close(&log);
    free(piece);
    assert_int_equal(info.st_size, 100 * PIECE);
    if ((int64_t)info.st_blocks * 512 > 90 * PIECE)
        skip(); /* the file system does not support holes */

    bytes_of[0] = 100 * PIECE;
    have(1, 0, "a", 0);
    assert_good(t, dt_log_tail_init(&tail, t->store, &run, -1, &t->arena, &t->err));
    assert_good(t, dt_log_tail_read(&tail, &lines, &count, DT_LOG_LAST, 0, t->store, &run,
                                    &t->arena, &t->err));
    assert_int_equal(tail.readers[0].dropped, 32 * PIECE);
    assert_int_equal(count, 68 * PIECE / LINE - 1); /* the first line may be incomplete */
    assert_memory_equal(lines[0].text, "2026-11-21", 10);
    assert_good(t, dt_log_tail_init(&tail, t->store, &run, -1, &t->arena, &t->err));
    assert_good(t, dt_log_tail_read(&tail, &lines, &count, DT_LOG_LAST, 5, t->store, &run,
                                    &t->arena, &t->err));
    assert_int_equal(count, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines_of_nodes_are_merged_by_time, setup,
                                        test_store_teardown),
        cmocka_unit_test_setup_teardown(test_of_a_long_log_the_oldest_is_dropped, setup,
                                        test_store_teardown),
        cmocka_unit_test_setup_teardown(test_a_late_line_is_ordered_before_later_ones, setup,
                                        test_store_teardown),
        cmocka_unit_test_setup_teardown(test_a_new_attempt_brings_ranks_and_other_nodes, setup,
                                        test_store_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
