/* Unit tests for runner/node_setup/workdir/ignore.h; tests/unit/ignore_like_git.py compares it with git. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runner/node_setup/workdir/ignore.h"

static bool ignored(const char *rules, const char *path, bool is_folder)
{
    dt_ignore ignore;
    bool out;

    dt_ignore_init(&ignore);
    dt_ignore_add(&ignore, "", ".gitignore", rules, strlen(rules));
    out = dt_ignore_has(&ignore, path, is_folder);
    dt_ignore_release(&ignore);
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
}

static void test_rules_of_a_folder_are_for_its_contents(void **state)
{
    dt_ignore ignore;
    size_t before;

    dt_ignore_init(&ignore);
    dt_ignore_add(&ignore, "", "x", "*.txt", 5);
    before = ignore.count;
    dt_ignore_add(&ignore, "a", "x", "!*.txt\n/b", 9);
    assert_false(dt_ignore_has(&ignore, "a/x.txt", false));
    assert_true(dt_ignore_has(&ignore, "x.txt", false));
    assert_true(dt_ignore_has(&ignore, "a/b", false));
    assert_false(dt_ignore_has(&ignore, "ab/b", false));
    dt_ignore_cut(&ignore, before);
    assert_true(dt_ignore_has(&ignore, "a/x.txt", false));
    dt_ignore_release(&ignore);
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
    dt_ignore ignore;
    size_t length;

    if (from == NULL)
        return 1;
    length = fread(rules, 1, sizeof(rules), from);
    fclose(from);
    dt_ignore_init(&ignore);
    dt_ignore_add(&ignore, "", ".gitignore", rules, length);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        puts(dt_ignore_has(&ignore, line + 2, line[0] == 'd') ? "1" : "0");
    }
    dt_ignore_release(&ignore);
    return 0;
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

    return argc == 2 ? print_all(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
