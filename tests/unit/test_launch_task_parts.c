/* The parts of a task: all lines in order, of about equal weight, whatever the lengths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/launch/task.h"

enum { BASE = 10 };

static dt_plan_task cut(const dt_strbuf *input, const dt_strbuf *target, dt_arena *arena)
{
    dt_plan_task task = {.lines = 0};
    int64_t at = 0;

    dt_task_parts_cut(&task, input, target, BASE, arena);
    assert_true(task.part_count <= DT_TASK_PARTS);
    for (int64_t i = 0; i < task.part_count; i++) {
        assert_int_equal(task.parts[i].first, at);
        assert_true(task.parts[i].lines >= 1);
        at += task.parts[i].lines;
    }
    assert_int_equal(task.lines, at);
    return task;
}

/* A line of `length` bytes. */
static void add_line(dt_strbuf *text, int64_t length)
{
    for (int64_t i = 0; i < length; i++)
        dt_strbuf_add_char(text, 'x');
    dt_strbuf_add_char(text, '\n');
}

static void test_few_lines_are_parts_of_their_own(void **state)
{
    dt_plan_task task;
    dt_strbuf text;
    dt_arena arena;

    (void)state;
    dt_arena_init(&arena, 0);
    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, "abc\n\nde\r\nlast");
    task = cut(&text, NULL, &arena);
    assert_int_equal(task.part_count, 4);
    assert_int_equal(task.parts[0].weight, BASE + 3);
    assert_int_equal(task.parts[1].weight, BASE);
    assert_int_equal(task.parts[2].weight, BASE + 2);
    assert_int_equal(task.parts[3].weight, BASE + 4);
    dt_strbuf_release(&text);
    dt_arena_release(&arena);
}

static void test_parts_of_many_lines_have_about_the_same_weight(void **state)
{
    enum { LINES = 20000, LONG = 500 };
    int64_t total = 0;
    dt_plan_task task;
    dt_strbuf text;
    dt_arena arena;

    (void)state;
    dt_arena_init(&arena, 0);
    dt_strbuf_init(&text);
    for (int64_t i = 0; i < LINES; i++) {
        int64_t length = i < LINES / 10 ? LONG : i % 40; /* the long lines come first */

        add_line(&text, length);
        total += BASE + length;
    }
    task = cut(&text, NULL, &arena);
    assert_int_equal(task.lines, LINES);
    assert_true(task.part_count > dt_task_parts_most(LINES) / 2);
    assert_true(task.parts[0].lines < task.parts[task.part_count - 2].lines);
    for (int64_t i = 0; i < task.part_count; i++)
        assert_true(task.parts[i].weight <= total / dt_task_parts_most(LINES) + 1 + BASE + LONG);
    dt_strbuf_release(&text);
    dt_arena_release(&arena);
}

static void test_translations_count_too(void **state)
{
    dt_strbuf text, target;
    dt_plan_task task;
    dt_arena arena;

    (void)state;
    dt_arena_init(&arena, 0);
    dt_strbuf_init(&text);
    dt_strbuf_init(&target);
    dt_strbuf_add_str(&text, "a\nb\n");
    dt_strbuf_add_str(&target, "four\nseven..\n");
    task = cut(&text, &target, &arena);
    assert_int_equal(task.parts[0].weight, BASE + 5);
    assert_int_equal(task.parts[1].weight, BASE + 8);
    dt_strbuf_release(&text);
    dt_strbuf_release(&target);
    dt_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_lines_are_parts_of_their_own),
        cmocka_unit_test(test_parts_of_many_lines_have_about_the_same_weight),
        cmocka_unit_test(test_translations_count_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
