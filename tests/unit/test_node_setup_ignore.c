/* Unit tests for runner/node_setup/workdir/ignore.h. With arguments it prints what is ignored or listed, for
 * tests/unit/ignore_like_git.py and tests/unit/workdir_like_git.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runner/node_setup/workdir/ignore.h"
#include "runner/node_setup/workdir/workdir.h"

static bool leaves_out(const dt_ignore *ignore, const char *path, bool is_folder)
{
    const dt_ignore_line *line = dt_ignore_find(ignore, path, is_folder);

    return line != NULL && !line->takes_in;
}

static bool ignored(const char *rules, const char *path, bool is_folder)
{
    dt_arena arena = {0};
    dt_ignore ignore = {.arena = &arena};
    bool out;

    dt_arena_init(&arena, 0);
    dt_ignore_add(&ignore, "", ".gitignore", rules, strlen(rules));
    out = leaves_out(&ignore, path, is_folder);
    dt_arena_release(&arena);
    return out;
}

static void test_name_matches_at_any_depth(void **state)
{
    assert_true(ignored("*.log", "x.log", false));
    assert_true(ignored("*.log", "a/b/x.log", false));
    assert_false(ignored("/*.log", "a/x.log", false));
    assert_false(ignored("a/*.log", "b/a/x.log", false));
}

static void test_last_rule_decides(void **state)
{
    assert_false(ignored("*.log\n!keep.log", "keep.log", false));
    assert_true(ignored("!keep.log\n*.log", "keep.log", false));
}

static void test_slash_at_the_end_means_folders(void **state)
{
    assert_true(ignored("data/", "a/data", true));
    assert_false(ignored("data/", "a/data", false));
}

static void test_stars_between_slashes_match_folders(void **state)
{
    assert_true(ignored("a/**/b", "a/b", false));
    assert_true(ignored("a/**/b", "a/x/y/b", false));
    assert_false(ignored("a/**/b", "a/xb", false));
    assert_true(ignored("**/b", "x/b", false));
    assert_true(ignored("a/**", "a/x/y", false));
    assert_false(ignored("a/**", "a", true));
    assert_false(ignored("a**b/c", "ax/yb/c", false));
}

static void test_escapes_comments_and_blanks(void **state)
{
    assert_true(ignored("\\#x", "#x", false));
    assert_false(ignored("#x", "#x", false));
    assert_true(ignored("x   ", "x", false));
    assert_true(ignored("x\\ ", "x ", false));
    assert_true(ignored("x\r\n", "x", false));
    assert_false(ignored("x\\", "x", false));
}

static void test_sets(void **state)
{
    assert_true(ignored("[a-c]x", "bx", false));
    assert_false(ignored("[!a-c]x", "bx", false));
    assert_true(ignored("[[:digit:]]", "7", false));
    assert_true(ignored("[]a]", "]", false));
    assert_false(ignored("[a", "a", false));
    assert_false(ignored("[!a]x", "b/x", false) && ignored("a[!b]c", "a/c", false));
}

static void test_rules_of_a_folder_are_for_its_contents(void **state)
{
    dt_arena arena = {0};
    dt_ignore ignore = {.arena = &arena};
    size_t before;

    dt_arena_init(&arena, 0);
    dt_ignore_add(&ignore, "", "x", "*.txt", 5);
    before = ignore.count;
    dt_ignore_add(&ignore, "a", "x", "!*.txt\n/b", 9);
    assert_false(leaves_out(&ignore, "a/x.txt", false));
    assert_true(leaves_out(&ignore, "x.txt", false));
    assert_true(leaves_out(&ignore, "a/b", false));
    assert_false(leaves_out(&ignore, "ab/b", false));
    ignore.count = before;
    assert_true(leaves_out(&ignore, "a/x.txt", false));
    dt_arena_release(&arena);
}

/* Many stars must not take exponential time. */
static void test_many_stars_are_fast(void **state)
{
    char rules[400] = "", path[400];

    for (int i = 0; i < 60; i++)
        snprintf(rules + 2 * i, sizeof(rules) - 2 * (size_t)i, "*a");
    snprintf(rules + 120, sizeof(rules) - 120, "b");
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_false(ignored(rules, path, false));
}

/* ignore RULES: for lines "f PATH" or "d PATH" on stdin prints "1" or "0"; for ignore_like_git.py. */
static int print_all(const char *file)
{
    static char rules[65536], line[4096];
    FILE *from = fopen(file, "r");
    dt_arena arena = {0};
    dt_ignore ignore = {.arena = &arena};
    size_t length;

    if (from == NULL)
        return 1;
    length = fread(rules, 1, sizeof(rules), from);
    fclose(from);
    dt_arena_init(&arena, 0);
    dt_ignore_add(&ignore, "", ".gitignore", rules, length);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        puts(leaves_out(&ignore, line + 2, line[0] == 'd') ? "1" : "0");
    }
    dt_arena_release(&arena);
    return 0;
}

/* list FOLDER: prints the paths that are sent, each with a '\\0', that of a folder with '/' at its end; on stderr the notes. */
static int print_listed(const char *folder)
{
    dt_error err = DT_ERROR_INIT;
    dt_workdir_left_list left;
    dt_arena arena = {0};
    dt_status st;
    dt_tree tree;
    dt_strbuf notes;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&notes);
    st = dt_workdir_list(&tree, &left, &notes, folder, INT64_MAX, &arena, &err);
    for (int64_t i = 0; st == DT_OK && i < tree.count; i++) {
        fputs(tree.entries[i].path, stdout);
        fputs(tree.entries[i].kind == DT_TREE_FOLDER ? "/" : "", stdout);
        putchar('\0');
    }
    fputs(st != DT_OK ? err.message : notes.length > 0 ? notes.data : "", stderr);
    dt_strbuf_release(&notes);
    dt_arena_release(&arena);
    return st != DT_OK;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_name_matches_at_any_depth),
        cmocka_unit_test(test_last_rule_decides),
        cmocka_unit_test(test_slash_at_the_end_means_folders),
        cmocka_unit_test(test_stars_between_slashes_match_folders),
        cmocka_unit_test(test_escapes_comments_and_blanks),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_rules_of_a_folder_are_for_its_contents),
        cmocka_unit_test(test_many_stars_are_fast),
    };

    if (argc == 3)
        return print_listed(argv[2]);
    return argc == 2 ? print_all(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
