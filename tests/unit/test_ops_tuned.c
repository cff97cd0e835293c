/* The file of tuned algorithms: what is read back, which process wins, and what is ignored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "engine/ops/cuda/tuned.h"

#define BYTES 64

static char folder[64], path[96];

static int start(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/dtrun-tuned-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/algorithms", folder);
    return 0;
}

static int end(void **state)
{
    return dt_file_remove_tree(folder, NULL) == DT_OK ? 0 : -1;
}

static void fill(unsigned char *algo, int with)
{
    for (int i = 0; i < BYTES; i++)
        algo[i] = (unsigned char)(with + i);
}

static void keep(const char *key, int with)
{
    dt_tuned *tuned = dt_tuned_open(path);
    unsigned char algo[BYTES];

    fill(algo, with);
    dt_tuned_keep(tuned, key, algo, BYTES);
    dt_tuned_close(tuned);
}

/* Returns the byte that the entry is filled with; -1: no entry. */
static int found(const char *key)
{
    dt_tuned *tuned = dt_tuned_open(path);
    unsigned char algo[BYTES], same[BYTES];
    int with = -1;

    if (dt_tuned_find(tuned, key, algo, BYTES)) {
        with = algo[0];
        fill(same, with);
        assert_memory_equal(algo, same, BYTES);
    }
    dt_tuned_close(tuned);
    return with;
}

static void rewrite(const char *from, const char *to)
{
    dt_strbuf text;
    char *at;

    dt_strbuf_init(&text);
    assert_int_equal(dt_file_read(&text, path, 1 << 20, NULL), DT_OK);
    at = strstr(text.data, from);
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    assert_int_equal(dt_file_write_atomic(path, text.data, text.length, 0600, NULL), DT_OK);
    dt_strbuf_release(&text);
}

static void test_what_was_kept_comes_back(void **state)
{
    assert_int_equal(found("card; nn 1 x 2 x 3"), -1);
    keep("card; nn 1 x 2 x 3", 1);
    keep("card; nn 1 x 2 x 33", 2);
    assert_int_equal(found("card; nn 1 x 2 x 3"), 1);
    assert_int_equal(found("card; nn 1 x 2 x 33"), 2);
    assert_int_equal(found("other card; nn 1 x 2 x 3"), -1);
}

static void test_the_first_of_two_processes_wins(void **state)
{
    dt_tuned *early = dt_tuned_open(path); /* reads the file before the other process writes */
    unsigned char algo[BYTES];

    keep("key", 7);
    fill(algo, 9);
    dt_tuned_keep(early, "key", algo, BYTES);
    assert_true(dt_tuned_find(early, "key", algo, BYTES));
    assert_int_equal(algo[0], 7);
    dt_tuned_close(early);
    assert_int_equal(found("key"), 7);
}

static void test_many_processes_lose_nothing(void **state)
{
    char key[32];
    int status;

    for (int p = 0; p < 4; p++)
        if (fork() == 0) {
            for (int i = 0; i < 5; i++) {
                snprintf(key, sizeof(key), "process %d key %d", p, i);
                keep(key, p * 5 + i);
            }
            _exit(0);
        }
    for (int p = 0; p < 4; p++)
        assert_true(wait(&status) > 0 && status == 0);
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof(key), "process %d key %d", i / 5, i % 5);
        assert_int_equal(found(key), i);
    }
}

static void test_damaged_lines_are_ignored_and_removed(void **state)
{
    keep("first", 1);
    keep("second", 2);
    keep("third", 3);
    rewrite("second\t02", "second\t12");
    assert_int_equal(found("first"), 1);
    assert_int_equal(found("second"), -1);
    assert_int_equal(found("third"), 3);
    rewrite("first\t", "first ");
    assert_int_equal(found("first"), -1);
    keep("second", 4); /* writes only the valid lines */
    assert_int_equal(found("second"), 4);
    assert_int_equal(found("third"), 3);
}

static void test_garbage_and_half_a_line_are_ignored(void **state)
{
    static const char garbage[] = "\0\1\2\t\t\t\n\n\t\nkey\t00\t0000000000000000\nkey\t";
    static const unsigned char other[16] = {0};
    dt_tuned *tuned;
    unsigned char algo[BYTES];

    assert_int_equal(dt_file_write_atomic(path, garbage, sizeof(garbage), 0600, NULL), DT_OK);
    assert_int_equal(found("key"), -1);
    keep("key", 5);
    assert_int_equal(found("key"), 5);
    tuned = dt_tuned_open(path); /* another size, as of another library */
    memcpy(algo, other, sizeof(other));
    assert_false(dt_tuned_find(tuned, "key", algo, sizeof(other)));
    dt_tuned_close(tuned);
}

static void test_a_folder_that_is_not_there_stops_nothing(void **state)
{
    dt_tuned *tuned = dt_tuned_open("/nowhere/at/all");
    unsigned char algo[BYTES];

    fill(algo, 1);
    assert_false(dt_tuned_find(tuned, "key", algo, BYTES));
    dt_tuned_keep(tuned, "key", algo, BYTES);
    dt_tuned_close(tuned);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_was_kept_comes_back),
        TEST(test_the_first_of_two_processes_wins),
        TEST(test_many_processes_lose_nothing),
        TEST(test_damaged_lines_are_ignored_and_removed),
        TEST(test_garbage_and_half_a_line_are_ignored),
        TEST(test_a_folder_that_is_not_there_stops_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
