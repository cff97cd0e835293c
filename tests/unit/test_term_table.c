/* table: columns are aligned whatever the cells contain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/term/term.h"

static const dt_term plain = {.fd = -1, .columns = 80};
static const dt_term coloured = {.fd = -1, .seen = true, .colour = true, .columns = 80};

static void test_columns_line_up_and_lines_end_without_blanks(void **state)
{
    static const dt_table_column columns[] = {{"run", false}, {"step", true}, {"why", false}};
    dt_arena arena;
    dt_table table;
    dt_strbuf out;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&out);
    dt_table_init(&table, columns, 3, &arena);
    dt_table_add(&table, DT_STYLE_PLAIN, "abcdef");
    dt_table_add(&table, DT_STYLE_PLAIN, "%d", 5);
    dt_table_add(&table, DT_STYLE_PLAIN, "%s", "");
    dt_table_add(&table, DT_STYLE_PLAIN, "ü");
    dt_table_add(&table, DT_STYLE_PLAIN, "12345");
    dt_table_add(&table, DT_STYLE_PLAIN, "full disk");
    dt_table_write(&out, &table, &plain, 1);
    assert_string_equal(out.data, " run      step  why\n"
                                  " abcdef      5\n"
                                  " ü       12345  full disk\n");
    dt_strbuf_release(&out);
    dt_arena_release(&arena);
}

static void test_a_table_without_titles_has_no_title_line(void **state)
{
    static const dt_table_column columns[] = {{NULL, false}, {NULL, false}};
    dt_arena arena;
    dt_table table;
    dt_strbuf out;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&out);
    dt_table_init(&table, columns, 2, &arena);
    dt_table_write(&out, &table, &plain, 2);
    assert_int_equal(out.length, 0);
    dt_table_add(&table, DT_STYLE_DIM, "loss");
    dt_table_add(&table, DT_STYLE_PLAIN, "1.5");
    dt_table_write(&out, &table, &plain, 2);
    assert_string_equal(out.data, "  loss  1.5\n");
    dt_strbuf_release(&out);
    dt_arena_release(&arena);
}

static void test_colour_does_not_move_columns(void **state)
{
    static const dt_table_column columns[] = {{NULL, false}, {NULL, false}};
    dt_arena arena;
    dt_table table;
    dt_strbuf out;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&out);
    dt_table_init(&table, columns, 2, &arena);
    dt_table_add(&table, DT_STYLE_BAD, "no");
    dt_table_add(&table, DT_STYLE_PLAIN, "x");
    dt_table_add(&table, DT_STYLE_PLAIN, "good");
    dt_table_add(&table, DT_STYLE_PLAIN, "y");
    dt_table_write(&out, &table, &coloured, 0);
    assert_string_equal(out.data, "\x1b[31mno\x1b[0m    x\ngood  y\n");
    dt_strbuf_release(&out);
    dt_arena_release(&arena);
}

static void test_a_narrow_terminal_gets_fewer_columns_and_a_pipe_all(void **state)
{
    static const dt_table_column columns[] = {
        {"run", false}, {"name", false}, {"step", true}, {"created", true}};
    static const int spare[] = {0, 0, 1, 2};
    static const struct {
        int columns;
        bool seen;
        const char *expected;
    } cases[] = {
        {34, true, "run     name         step  created\nabcdef  shakespeare     5      now\n"},
        {33, true, "run     name         step\nabcdef  shakespeare     5\n"},
        {25, true, "run     name         step\nabcdef  shakespeare     5\n"},
        {20, true, "run     name\nabcdef  shakespeare\n"},
        {18, true, "run     name\nabcdef  shakespear\n        e\n"},
        {5, true, "run     name\nabcdef  shakespe\n        are\n"},
        {5, false, "run     name         step  created\nabcdef  shakespeare     5      now\n"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_term term = {.fd = -1, .seen = cases[i].seen, .columns = cases[i].columns};
        dt_arena arena;
        dt_table table;
        dt_strbuf out;

        dt_arena_init(&arena, 0);
        dt_strbuf_init(&out);
        dt_table_init(&table, columns, 4, &arena);
        table.spare = spare;
        dt_table_add(&table, DT_STYLE_PLAIN, "abcdef");
        dt_table_add(&table, DT_STYLE_PLAIN, "shakespeare");
        dt_table_add(&table, DT_STYLE_PLAIN, "5");
        dt_table_add(&table, DT_STYLE_PLAIN, "now");
        dt_table_write(&out, &table, &term, 0);
        assert_string_equal(out.data, cases[i].expected);
        dt_strbuf_release(&out);
        dt_arena_release(&arena);
    }
}

/* Writes a table of two cells a row on a terminal of this width. */
static void expect_written(const dt_table_column *columns, bool clipped, int width,
                           const char *const *cells, size_t count, const char *expected)
{
    dt_term term = {.fd = -1, .seen = true, .columns = width};
    dt_arena arena;
    dt_table table;
    dt_strbuf out;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&out);
    dt_table_init(&table, columns, 2, &arena);
    table.clipped = clipped;
    for (size_t i = 0; i < count; i++)
        dt_table_add(&table, DT_STYLE_PLAIN, "%s", cells[i]);
    dt_table_write(&out, &table, &term, 2);
    assert_string_equal(out.data, expected);
    dt_strbuf_release(&out);
    dt_arena_release(&arena);
}

static void test_text_is_wrapped_and_a_screen_clips_it(void **state)
{
    static const dt_table_column columns[] = {{"name", false}, {"why", false}};
    static const char *const cells[] = {"a-name-of-a-run", "the disk is full, and nothing is left",
                                        "b", "good"};

    expect_written(columns, false, 36, cells, 4,
                   "  name             why\n"
                   "  a-name-of-a-run  the disk is full,\n"
                   "                   and nothing is\n"
                   "                   left\n"
                   "  b                good\n");
    expect_written(columns, true, 36, cells, 4,
                   "  name             why\n"
                   "  a-name-of-a-run  the disk is full~\n"
                   "  b                good\n");
}

static void test_a_name_is_cut_in_the_middle_before_a_column_is_left_out(void **state)
{
    static const dt_table_column columns[] = {{"name", false}, {"run", false}, {"left", true}};
    static const int spare[] = {0, 1, 2}, least[] = {9, 0, 0};
    static const struct {
        int width;
        const char *expected;
    } cases[] = {{40, "name                      run     left\n"
                      "sweep-of-rates-lr-0.0003  abcdef   59s\n"
                      "\xe6\x97\xa5\xe6\x9c\xac"
                      "-sweep-of-rates-lr-1  ghijkl  1h02\n"},
                 {24, "name        run     left\n"
                      "sweep-~003  abcdef   59s\n"
                      "\xe6\x97\xa5\xe6\x9c\xac"
                      "-s~r-1  ghijkl  1h02\n"},
                 {20, "name          run\n"
                      "sweep-of~003  abcdef\n"
                      "\xe6\x97\xa5\xe6\x9c\xac"
                      "-swe~r-1  ghijkl\n"},
                 {11, "name\n"
                      "sweep-o~003\n"
                      "\xe6\x97\xa5\xe6\x9c\xac"
                      "-sw~r-1\n"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_term term = {.fd = -1, .seen = true, .columns = cases[i].width};
        dt_arena arena;
        dt_table table;
        dt_strbuf out;

        dt_arena_init(&arena, 0);
        dt_strbuf_init(&out);
        dt_table_init(&table, columns, 3, &arena);
        table.clipped = true;
        table.spare = spare;
        table.least = least;
        dt_table_add(&table, DT_STYLE_PLAIN, "sweep-of-rates-lr-0.0003");
        dt_table_add(&table, DT_STYLE_PLAIN, "abcdef");
        dt_table_add(&table, DT_STYLE_PLAIN, "59s");
        dt_table_add(&table, DT_STYLE_PLAIN, "\xe6\x97\xa5\xe6\x9c\xac-sweep-of-rates-lr-1");
        dt_table_add(&table, DT_STYLE_PLAIN, "ghijkl");
        dt_table_add(&table, DT_STYLE_PLAIN, "1h02");
        dt_table_write(&out, &table, &term, 0);
        assert_string_equal(out.data, cases[i].expected);
        dt_strbuf_release(&out);
        dt_arena_release(&arena);
    }
}

static void test_labels_keep_their_width_and_a_path_is_never_broken(void **state)
{
    static const dt_table_column columns[] = {{NULL, false}, {NULL, false}};
    static const char *const cells[] = {"data", "one file, which is long enough for two lines",
                                        "checkpoint",
                                        "/a/folder with blanks/of/a/run/that/is/long"};

    expect_written(columns, false, 40, cells, 4,
                   "  data        one file, which is long\n"
                   "              enough for two lines\n"
                   "  checkpoint  /a/folder with blanks/of/a/run/that/is/long\n");
    expect_written(columns, false, 20, cells, 2,
                   "  data  one file, which is\n"
                   "        long enough for two\n"
                   "        lines\n");
}

static void test_cells_after_a_path_stay_in_their_columns(void **state)
{
    static const dt_table_column columns[] = {{"path", false}, {"size", true}};
    static const char *const cells[] = {"/a/path/that/is/wider", "12", "/b", "3"};

    expect_written(columns, false, 20, cells, 4,
                   "  path          size\n"
                   "  /a/path/that/is/wider\n"
                   "                  12\n"
                   "  /b               3\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_line_up_and_lines_end_without_blanks),
        cmocka_unit_test(test_a_table_without_titles_has_no_title_line),
        cmocka_unit_test(test_colour_does_not_move_columns),
        cmocka_unit_test(test_a_narrow_terminal_gets_fewer_columns_and_a_pipe_all),
        cmocka_unit_test(test_text_is_wrapped_and_a_screen_clips_it),
        cmocka_unit_test(test_a_name_is_cut_in_the_middle_before_a_column_is_left_out),
        cmocka_unit_test(test_labels_keep_their_width_and_a_path_is_never_broken),
        cmocka_unit_test(test_cells_after_a_path_stay_in_their_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
