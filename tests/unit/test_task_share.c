/* Which lines of a task each rank processes: every line of the missing parts once, for any number of ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/task/share.h"

enum { LINES = 23 };

static const char text[] =
    "0\n1\r\n2\n3\n4\n\n6\n7\n8\n9\n10\n11\r\r\n12\n13\n14\n15\n16\n17\n18\n19\n20\n21\n22";

static void test_every_missing_line_is_one_rank_s(void **state)
{
    int64_t done[] = {0, 1, 2, 4};
    dt_plan_task task = {.input = "in", .lines = LINES, .done = done};
    dt_strbuf all;

    (void)state;
    dt_strbuf_init(&all);
    dt_strbuf_add_str(&all, text);
    for (task.part_lines = 1; task.part_lines <= 25; task.part_lines++)
        for (int64_t world = 1; world <= 30; world++)
            for (task.done_count = 0; task.done_count <= 2; task.done_count++) {
                int seen[LINES] = {0};

                if (task.done_count > 0 &&
                    done[2 * task.done_count - 1] > dt_plan_task_parts(&task))
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
                    int64_t part = i / task.part_lines;
                    bool there = (task.done_count > 0 && part < 1) ||
                                 (task.done_count > 1 && part >= 2 && part < 4);

                    assert_int_equal(seen[i], there ? 0 : 1);
                }
            }
    dt_strbuf_release(&all);
}

static void test_lines_stay_as_they_stand_in_the_file(void **state)
{
    dt_plan_task task = {.input = "in", .lines = LINES, .part_lines = 6};
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

static void test_another_file_is_refused(void **state)
{
    dt_plan_task task = {.input = "in", .part_lines = 6};
    dt_task_share share = {.count = 0};
    dt_strbuf all;

    (void)state;
    dt_strbuf_init(&all);
    dt_strbuf_add_str(&all, text);
    for (task.lines = LINES - 1; task.lines <= LINES + 1; task.lines += 2) {
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
        cmocka_unit_test(test_another_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
