/* Which lines of a task each rank processes: every line of the missing parts once, for any number
 * of ranks, with about equal work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/task/task.h"

enum { LINES = 23 };

static const char text[] =
    "0\n1\r\n2\n3\n4\n\n6\n7\n8\n9\n10\n11\r\r\n12\n13\n14\n15\n16\n17\n18\n19\n20\n21\n22";

/* A task of parts of `each` lines; part i has the weight weights[i % count]. */
static dt_plan_task task_of(dt_plan_part *parts, int64_t lines, int64_t each,
                            const int64_t *weights, int64_t count)
{
    dt_plan_task task = {.input = "in", .lines = lines, .parts = parts};

    for (int64_t at = 0; at < lines; at += each) {
        int64_t rest = lines - at;

        parts[task.part_count] =
            (dt_plan_part){at, rest < each ? rest : each, weights[task.part_count % count]};
        task.part_count++;
    }
    return task;
}

static const int64_t equal[] = {1}, different[] = {5, 1, 9, 2};

static void test_every_missing_line_is_one_rank_s(void **state)
{
    int64_t done[] = {0, 1, 2, 4};
    dt_plan_part parts[LINES];
    dt_strbuf all;

    (void)state;
    dt_strbuf_init(&all);
    dt_strbuf_add_str(&all, text);
    for (int64_t each = 1; each <= 25; each++)
        for (int64_t world = 1; world <= 30; world++)
            for (int64_t ranges = 0; ranges <= 2; ranges++) {
                dt_plan_task task = task_of(parts, LINES, each, different, 4);
                int seen[LINES] = {0};

                task.done = done;
                task.done_count = ranges;
                if (ranges > 0 && done[2 * ranges - 1] > task.part_count)
                    continue;
                for (int64_t rank = 0; rank < world; rank++) {
                    dt_task_share share = {.count = 0};

                    assert_int_equal(dt_task_share_take(&share, &task, &all, rank, world, NULL),
                                     DT_OK);
                    for (int64_t i = 0; i < share.count; i++) {
                        seen[share.numbers[i]]++;
                        assert_true(i == 0 || share.numbers[i] > share.numbers[i - 1]);
                    }
                    dt_task_share_release(&share);
                }
                for (int64_t i = 0; i < LINES; i++) {
                    int64_t part = i / each;
                    bool there = (ranges > 0 && part < 1) || (ranges > 1 && part >= 2 && part < 4);

                    assert_int_equal(seen[i], there ? 0 : 1);
                }
            }
    dt_strbuf_release(&all);
}

static void test_lines_stay_as_they_stand_in_the_file(void **state)
{
    dt_plan_part parts[LINES];
    dt_plan_task task = task_of(parts, LINES, 6, equal, 1);
    dt_task_share share;
    dt_strbuf all;

    (void)state;
    dt_strbuf_init(&all);
    dt_strbuf_add_str(&all, text);
    assert_int_equal(dt_task_share_take(&share, &task, &all, 0, 2, NULL), DT_OK);
    assert_string_equal(share.text.data, "0\n1\r\n2\n3\n4\n\n12\n13\n14\n15\n16\n17\n");
    dt_task_share_release(&share);
    assert_int_equal(dt_task_share_take(&share, &task, &all, 1, 2, NULL), DT_OK);
    assert_string_equal(share.text.data, "6\n7\n8\n9\n10\n11\r\r\n18\n19\n20\n21\n22");
    dt_task_share_release(&share);
    dt_strbuf_release(&all);
}

/* One part has as much work as all others together: its rank gets no other. */
static void test_no_rank_has_more_work_than_needed(void **state)
{
    static const int64_t weights[] = {1, 1, 6, 1, 1, 1, 1};
    dt_plan_part parts[LINES];
    dt_plan_task task = task_of(parts, 7, 1, weights, 7);
    dt_task_share share;
    dt_strbuf all;

    (void)state;
    dt_strbuf_init(&all);
    dt_strbuf_add_str(&all, "0\n1\n2\n3\n4\n5\n6\n");
    assert_int_equal(dt_task_share_take(&share, &task, &all, 0, 2, NULL), DT_OK);
    assert_string_equal(share.text.data, "2\n");
    dt_task_share_release(&share);
    assert_int_equal(dt_task_share_take(&share, &task, &all, 1, 2, NULL), DT_OK);
    assert_string_equal(share.text.data, "0\n1\n3\n4\n5\n6\n");
    dt_task_share_release(&share);
    dt_strbuf_release(&all);
}

static void test_another_file_is_refused(void **state)
{
    dt_plan_part parts[LINES + 1];
    dt_strbuf all;

    (void)state;
    dt_strbuf_init(&all);
    dt_strbuf_add_str(&all, text);
    for (int64_t lines = LINES - 1; lines <= LINES + 1; lines += 2) {
        dt_plan_task task = task_of(parts, lines, 6, equal, 1);
        dt_task_share share = {.count = 0};

        assert_int_equal(dt_task_share_take(&share, &task, &all, 0, 1, NULL), DT_ERR_CORRUPT);
        dt_task_share_release(&share);
    }
    dt_strbuf_release(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_missing_line_is_one_rank_s),
        cmocka_unit_test(test_lines_stay_as_they_stand_in_the_file),
        cmocka_unit_test(test_no_rank_has_more_work_than_needed),
        cmocka_unit_test(test_another_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
