/* Which changes of the data invalidate a position in them, by the messages about them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data_support.h"
#include "engine/data/fingerprint.h"

static json_t *make(const data_folder *folder)
{
    dt_error err = DT_ERROR_INIT;
    json_t *out;

    if (dt_fingerprint_make(&out, &folder->recipe, &err) != DT_OK)
        fail_msg("%s", err.message);
    return out;
}

/* `words`: the difference that must be reported; "": none. */
static void expect(const data_folder *folder, const json_t *was, const char *words)
{
    json_t *is = make(folder);
    dt_strbuf said;

    dt_strbuf_init(&said);
    assert_int_equal(dt_fingerprint_differs(&said, was, is), words[0] != '\0');
    assert_string_equal(said.data, words);
    dt_strbuf_release(&said);
    json_decref(is);
}

static void test_every_difference_is_named(void **state)
{
    data_folder *folder = *state;
    json_t *was;

    data_write_text(folder, "a.txt", "the quick brown fox\n");
    data_write_text(folder, "b.txt", "jumps over\n");
    data_train(folder, "a.txt");
    data_train(folder, "b.txt");
    was = make(folder);
    expect(folder, was, "");

    folder->recipe.seed++;
    folder->recipe.batch.tokens = 5;
    folder->recipe.data.split = 0.25;
    folder->recipe.data.tail = DT_TAIL_DROP;
    expect(folder, was,
           "data.split was 0.1, is 0.25; batch.tokens was 4, is 5; data.tail was wrap, "
           "is drop; seed was 0, is 1");
    folder->recipe.seed--;
    folder->recipe.batch.tokens = 4;
    folder->recipe.data.split = 0.1;
    folder->recipe.data.tail = DT_TAIL_WRAP;

    data_write_text(folder, "b.txt", "jumps over it\n");
    expect(folder, was, "file 2 had 11 bytes, has 14");
    data_write_text(folder, "b.txt", "jumps oveR\n");
    expect(folder, was, "file 2 has other content");
    data_write_text(folder, "b.txt", "jumps over\n");
    folder->recipe.data.tokens = DT_TOKENS_BYTE;
    expect(folder, was, "file 1 was read as char, is as byte; file 2 was read as char, is as byte");
    folder->recipe.data.tokens = DT_TOKENS_AUTO;
    data_train(folder, "a.txt");
    expect(folder, was, "there were 2 files, there are 3");
    json_decref(was);
}

static void test_names_do_not_count_and_order_does(void **state)
{
    data_folder *folder = *state;
    json_t *was;

    data_write_text(folder, "a.txt", "some\n");
    data_write_text(folder, "b.txt", "text\n");
    data_train(folder, "a.txt");
    data_train(folder, "b.txt");
    was = make(folder);
    data_write_text(folder, "a.txt", "text\n");
    data_write_text(folder, "b.txt", "some\n");
    expect(folder, was, "file 1 has other content; file 2 has other content");
    data_write_text(folder, "c.txt", "some\n");
    data_write_text(folder, "d.txt", "text\n");
    folder->recipe.data.train.count = 0;
    data_train(folder, "c.txt");
    data_train(folder, "d.txt");
    expect(folder, was, "");
    json_decref(was);
}

static void test_validation_files_may_be_others_but_not_come_or_go(void **state)
{
    data_folder *folder = *state;
    json_t *split, *was, *is;

    data_write_text(folder, "a.txt", "some text\n");
    data_write_text(folder, "v.txt", "more\n");
    data_train(folder, "a.txt");
    split = make(folder);
    data_validate(folder, "v.txt");
    was = make(folder);
    expect(folder, split, "data.split was 0.1, is none");
    assert_true(dt_fingerprint_validation_differs(split, was));
    folder->recipe.data.split = 0.3; /* has no effect with validation files */
    data_write_text(folder, "v.txt", "moRe\n");
    is = make(folder);
    expect(folder, was, "");
    assert_true(dt_fingerprint_validation_differs(was, is));
    assert_false(dt_fingerprint_validation_differs(is, is));
    json_decref(split);
    json_decref(was);
    json_decref(is);
}

/* A sparse file needs neither space nor time. */
static void test_large_files_are_looked_at_in_places(void **state)
{
    data_folder *folder = *state;
    int64_t bytes = DT_FINGERPRINT_BYTES + 12345;
    const json_t *file;
    json_t *was;
    char path[96];
    int fd;

    data_write_text(folder, "large.txt", "x");
    snprintf(path, sizeof(path), "%s/large.txt", folder->path);
    assert_int_equal(truncate(path, bytes), 0);
    folder->recipe.data.tokens = DT_TOKENS_BYTE;
    data_train(folder, "large.txt");
    was = make(folder);
    file = json_array_get(json_object_get(was, "files"), 0);
    assert_int_equal(json_integer_value(json_object_get(file, "bytes")), bytes);
    assert_int_equal(json_integer_value(json_object_get(file, "digested_bytes")),
                     DT_FINGERPRINT_BYTES);
    expect(folder, was, "");
    fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "y", 1, bytes - 1), 1); /* the last byte is in a checked window */
    close(fd);
    expect(folder, was, "file 1 has other content");
    json_decref(was);
}

int main(void)
{
#define IN_A_FOLDER(test) \
    cmocka_unit_test_setup_teardown(test, data_folder_make, data_folder_remove)
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(test_every_difference_is_named),
        IN_A_FOLDER(test_names_do_not_count_and_order_does),
        IN_A_FOLDER(test_validation_files_may_be_others_but_not_come_or_go),
        IN_A_FOLDER(test_large_files_are_looked_at_in_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
