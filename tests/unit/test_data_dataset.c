/* dataset: which files are read as which tokens, and which are refused with which message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data_support.h"

/* Compares all tokens of the validation windows, in file order. */
static void expect_valid(const dt_dataset *dataset, const int32_t *wanted, int64_t count)
{
    int32_t inputs[64], targets[64];

    assert_int_equal(dt_dataset_valid_tokens(dataset), count);
    assert_int_equal(dt_validation_count(dataset, count - 1), 1);
    assert_int_equal(
        dt_validation_fill(dataset, count - 1, 0, (void *[]){inputs, targets}, 0, NULL), DT_OK);
    for (int64_t i = 0; i + 1 < count; i++) {
        assert_int_equal(inputs[i], wanted[i]);
        assert_int_equal(targets[i], wanted[i + 1]);
    }
}

static void test_chars_are_numbered_by_code_point(void **state)
{
    data_folder *folder = *state;
    static const int32_t wanted[] = {1, 3, 0, 2};
    dt_dataset *dataset;

    data_write_text(folder, "train.txt", "abaabb\n\xc3\xa9");
    data_write_text(folder, "valid.txt", "a\xc3\xa9\nb");
    data_train(folder, "train.txt");
    data_validate(folder, "valid.txt");
    dataset = data_open(folder);
    assert_int_equal(dt_tokenizer_vocab(dt_dataset_tokenizer(dataset)), 4);
    assert_int_equal(dt_dataset_train_tokens(dataset), 8);
    expect_valid(dataset, wanted, 4);
    dt_dataset_close(dataset);
}

static void test_a_character_of_validation_alone_is_in_the_vocabulary(void **state)
{
    data_folder *folder = *state;
    static const int32_t wanted[] = {2, 0};
    dt_dataset *dataset;

    data_write_text(folder, "train.txt", "abababab");
    data_write_text(folder, "valid.txt", "za");
    data_train(folder, "train.txt");
    data_validate(folder, "valid.txt");
    dataset = data_open(folder);
    assert_int_equal(dt_tokenizer_vocab(dt_dataset_tokenizer(dataset)), 3);
    expect_valid(dataset, wanted, 2);
    dt_dataset_close(dataset);
}

static void test_globs_are_sorted_and_lists_keep_their_order(void **state)
{
    data_folder *folder = *state;
    static const int32_t wanted[] = {'z', 'a', 'b', 'B'};
    dt_dataset *dataset;

    data_write_text(folder, "train.txt", "0123456789");
    data_write_text(folder, "part-b.txt", "b");
    data_write_text(folder, "part-a.txt", "a");
    data_write_text(folder, "last.txt", "B");
    data_write_text(folder, "first.txt", "z");
    data_train(folder, "train.txt");
    data_validate(folder, "first.txt");
    data_validate(folder, "part-*.txt");
    data_validate(folder, "last.txt");
    folder->recipe.data.tokens = DT_TOKENS_BYTE;
    dataset = data_open(folder);
    expect_valid(dataset, wanted, 4);
    dt_dataset_close(dataset);
}

static void test_a_name_with_brackets_is_found_as_it_is(void **state)
{
    data_folder *folder = *state;
    dt_dataset *dataset;

    data_write_text(folder, "corpus[1].txt", "0123456789");
    data_train(folder, "corpus[1].txt");
    folder->recipe.data.split = 0;
    dataset = data_open(folder);
    assert_int_equal(dt_dataset_train_tokens(dataset), 10);
    assert_int_equal(dt_dataset_valid_tokens(dataset), 0);
    assert_int_equal(dt_validation_count(dataset, 4), 0);
    dt_dataset_close(dataset);
}

static void test_the_split_is_the_end_of_the_stream(void **state)
{
    data_folder *folder = *state;
    static const int32_t wanted[] = {'h', 'i', 'j'};
    dt_dataset *dataset;

    data_write_text(folder, "a.txt", "abcdef");
    data_write_text(folder, "b.txt", "ghij");
    data_train(folder, "?.txt");
    folder->recipe.data.tokens = DT_TOKENS_BYTE;
    folder->recipe.data.split = 0.3;
    dataset = data_open(folder);
    assert_int_equal(dt_dataset_train_tokens(dataset), 7);
    expect_valid(dataset, wanted, 3);
    dt_dataset_close(dataset);
}

static void test_bin_files_of_both_formats_are_read(void **state)
{
    data_folder *folder = *state;
    static const uint32_t tokens[] = {0, 7, 50256, 3, 9, 11};
    static const uint32_t wide[] = {128000, 5};
    static const uint16_t narrow[] = {65535, 1, 2};
    static const int32_t wanted[] = {128000, 5, 65535, 1, 2};
    dt_dataset *dataset;

    data_write_llmc(folder, "train.bin", 20240520, 1, 6, 2, tokens, 6);
    data_write_llmc(folder, "wide.bin", 20240801, 7, 2, 4, wide, 2);
    data_write_uint16(folder, "narrow.bin", narrow, 3);
    data_train(folder, "train.bin");
    data_validate(folder, "wide.bin");
    data_validate(folder, "narrow.bin");
    dataset = data_open(folder);
    assert_int_equal(dt_dataset_train_tokens(dataset), 6);
    assert_int_equal(dt_tokenizer_vocab(dt_dataset_tokenizer(dataset)), 128001);
    expect_valid(dataset, wanted, 5);
    dt_dataset_close(dataset);
}

static void test_a_given_vocabulary_is_taken_for_ids(void **state)
{
    data_folder *folder = *state;
    static const uint16_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    dt_dataset_facts facts;
    dt_dataset *dataset;

    data_write_uint16(folder, "train.bin", tokens, 10);
    data_train(folder, "train.bin");
    folder->recipe.data.split = 0;
    folder->recipe.model.vocab = 50257;
    dataset = data_open(folder);
    assert_int_equal(dt_tokenizer_vocab(dt_dataset_tokenizer(dataset)), 50257);
    dt_dataset_close(dataset);
    assert_int_equal(dt_dataset_check(&facts, &folder->recipe, NULL, NULL), DT_OK);
    assert_int_equal(facts.vocab, 50257);
    assert_int_equal(facts.train_tokens, 10);
    folder->recipe.model.vocab = 10;
    data_refuse(folder, "train.bin", "token number 9 is 10", "model.vocab", NULL);
}

static void test_a_fixed_tokenizer_numbers_as_before(void **state)
{
    data_folder *folder = *state;
    static const int32_t wanted[] = {2, 0};
    dt_dataset *first, *second = NULL;
    dt_error err = DT_ERROR_INIT;

    data_write_text(folder, "train.txt", "abcabcabc");
    data_write_text(folder, "less.txt", "acacacac");
    data_write_text(folder, "valid.txt", "ca");
    data_write_text(folder, "more.txt", "acacacad");
    data_train(folder, "train.txt");
    data_validate(folder, "valid.txt");
    first = data_open(folder);
    folder->recipe.data.train.count = 0;
    data_train(folder, "less.txt");
    assert_int_equal(dt_dataset_open(&second, &folder->recipe, dt_dataset_tokenizer(first), NULL),
                     DT_OK);
    assert_int_equal(dt_tokenizer_vocab(dt_dataset_tokenizer(second)), 3);
    expect_valid(second, wanted, 2);
    dt_dataset_close(second);
    folder->recipe.data.train.count = 0;
    data_train(folder, "more.txt");
    assert_int_equal(dt_dataset_open(&second, &folder->recipe, dt_dataset_tokenizer(first), &err),
                     DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "'d' (U+0064) at byte 7"));
    dt_error_clear(&err);
    folder->recipe.data.tokens = DT_TOKENS_BYTE;
    assert_int_equal(dt_dataset_open(&second, &folder->recipe, dt_dataset_tokenizer(first), &err),
                     DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "'char'"));
    dt_dataset_close(first);
}

static void test_more_than_256_characters_take_wider_tokens(void **state)
{
    data_folder *folder = *state;
    char text[4096];
    size_t length = 0;
    int32_t inputs[4], targets[4];
    dt_dataset *dataset;

    for (int i = 0; i < 700; i++) { /* from U+0400, two bytes each */
        text[length++] = (char)(0xd0 | (i >> 6));
        text[length++] = (char)(0x80 | (i & 63));
    }
    data_write(folder, "train.txt", text, length);
    data_train(folder, "train.txt");
    dataset = data_open(folder);
    assert_int_equal(dt_tokenizer_vocab(dt_dataset_tokenizer(dataset)), 700);
    assert_int_equal(dt_dataset_train_tokens(dataset), 630);
    assert_int_equal(dt_validation_fill(dataset, 4, 0, (void *[]){inputs, targets}, 0, NULL),
                     DT_OK);
    assert_int_equal(inputs[0], 630);
    assert_int_equal(targets[3], 634);
    dt_dataset_close(dataset);
}

/* --- refusals: open and check give the same message */

static void test_a_missing_file_is_named(void **state)
{
    data_folder *folder = *state;

    data_train(folder, "nowhere.txt");
    data_refuse(folder, "data.train", "nowhere.txt' does not exist", "recipe's folder", NULL);
    folder->recipe.data.train.count = 0;
    data_train(folder, "no*where.txt");
    data_refuse(folder, "no file matches", "no*where.txt", NULL);
    folder->recipe.data.train.count = 0;
    data_refuse(folder, "data.train names no file", NULL);
}

static void test_what_is_not_a_file_is_refused(void **state)
{
    data_folder *folder = *state;
    char path[256];

    snprintf(path, sizeof(path), "%s/folder", folder->path);
    assert_int_equal(mkdir(path, 0755), 0);
    data_train(folder, "folder");
    data_refuse(folder, "is a directory", "*.txt", NULL);
    folder->recipe.data.train.count = 0;
    snprintf(path, sizeof(path), "%s/pipe", folder->path);
    assert_int_equal(mkfifo(path, 0644), 0);
    data_train(folder, "pipe");
    data_refuse(folder, "not a regular file", NULL);
    folder->recipe.data.train.count = 0;
    data_write_text(folder, "empty.txt", "");
    data_train(folder, "empty.txt");
    data_refuse(folder, "empty.txt' is empty", NULL);
}

static void test_an_unreadable_file_is_named(void **state)
{
    data_folder *folder = *state;
    char path[256];
    pid_t child;
    int code;

    data_write_text(folder, "secret.txt", "0123456789");
    snprintf(path, sizeof(path), "%s/secret.txt", folder->path);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(chmod(folder->path, 0755), 0);
    data_train(folder, "secret.txt");
    child = fork(); /* root can read everything */
    if (child == 0) {
        dt_error err = DT_ERROR_INIT;
        dt_dataset *dataset;

        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(2);
        _exit(dt_dataset_open(&dataset, &folder->recipe, NULL, &err) == DT_ERR_RECIPE &&
                      strstr(err.message, "secret.txt': Permission denied") != NULL
                  ? 0
                  : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code));
    assert_int_equal(WEXITSTATUS(code), 0);
}

static void test_broken_utf8_is_reported_with_its_byte(void **state)
{
    data_folder *folder = *state;

    data_write(folder, "train.txt", "0123456789\xff", 11);
    data_train(folder, "train.txt");
    data_refuse(folder, "train.txt': byte 10 is not UTF-8 (0xff)", "data.tokens: byte", NULL);
    data_write(folder, "train.txt", "01234\0006789", 10);
    data_refuse(folder, "byte 5 is NUL", NULL);
    folder->recipe.data.tokens = DT_TOKENS_BYTE;
    folder->recipe.data.split = 0;
    dt_dataset_close(data_open(folder));
}

static void test_too_little_data_is_reported_with_numbers(void **state)
{
    data_folder *folder = *state;

    data_write_text(folder, "train.txt", "abcd");
    data_train(folder, "train.txt");
    folder->recipe.data.split = 0;
    data_refuse(folder, "train.txt", "has 4 tokens", "the 5 that one sequence takes", NULL);
    folder->recipe.data.split = 0.25;
    data_refuse(folder, "data.split 0.25 leaves 1", NULL);
    data_write_text(folder, "train.txt", "abcdef");
    folder->recipe.data.split = 0.34;
    data_refuse(folder, "has 3 tokens after the split", NULL);
    data_write_text(folder, "valid.txt", "a");
    data_validate(folder, "valid.txt");
    data_refuse(folder, "data.validation", "valid.txt", "1 token", NULL);
}

static void test_damaged_bin_headers_are_reported(void **state)
{
    data_folder *folder = *state;
    static const uint32_t tokens[] = {0, 7, 1, 3, 9, 11};

    data_train(folder, "train.bin");
    folder->recipe.data.split = 0;
    data_write_llmc(folder, "train.bin", 20240520, 2, 6, 2, tokens, 6);
    data_refuse(folder, "train.bin", "version 2", NULL);
    data_write_llmc(folder, "train.bin", 20240520, 1, 7, 2, tokens, 6);
    data_refuse(folder, "header says 7 tokens", "12 bytes follow", NULL);
    data_write_llmc(folder, "train.bin", 20240520, 1, -6, 2, tokens, 6);
    data_refuse(folder, "header says -6 tokens", NULL);
    data_write_llmc(folder, "train.bin", 20240801, 7, 6, 2, tokens, 6);
    data_refuse(folder, "header says 6 tokens of 4 bytes", NULL);
    data_write(folder, "train.bin",
               "\xd8\xd8\x34\x01"
               "cut",
               7);
    folder->recipe.data.tokens = DT_TOKENS_LLMC;
    data_refuse(folder, "not an llm.c token file", NULL);
    folder->recipe.data.tokens = DT_TOKENS_NANOGPT;
    data_refuse(folder, "has 7 bytes", NULL);
    data_write_llmc(folder, "train.bin", 20240520, 1, 6, 2, tokens, 6);
    data_refuse(folder, "begins with an llm.c header", NULL);
    folder->recipe.data.tokens = DT_TOKENS_LLMC;
    dt_dataset_close(data_open(folder));
}

static void test_an_id_beyond_every_vocabulary_is_reported(void **state)
{
    data_folder *folder = *state;
    static const uint32_t tokens[] = {0, 7, 1, 3, 0xffffffff, 11};

    data_write_llmc(folder, "train.bin", 20240801, 7, 6, 4, tokens, 6);
    data_train(folder, "train.bin");
    folder->recipe.data.split = 0;
    data_refuse(folder, "4294967295", NULL);
    folder->recipe.model.vocab = 1000;
    data_refuse(folder, "token number 4 is 4294967295", NULL);
}

static void test_text_and_tokens_do_not_mix(void **state)
{
    data_folder *folder = *state;
    static const uint16_t tokens[] = {1, 2, 3, 4, 5, 6};

    data_write_text(folder, "train.txt", "0123456789");
    data_write_uint16(folder, "valid.bin", tokens, 6);
    data_train(folder, "train.txt");
    data_validate(folder, "valid.bin");
    data_refuse(folder, "train.txt", "char", "valid.bin", "nanogpt", "do not mix", NULL);
}

static void test_a_vocabulary_too_small_for_the_text_is_reported(void **state)
{
    data_folder *folder = *state;

    data_write_text(folder, "train.txt", "0123456789");
    data_train(folder, "train.txt");
    folder->recipe.data.split = 0;
    folder->recipe.model.vocab = 9;
    data_refuse(folder, "model.vocab is 9", "10 different", NULL);
    folder->recipe.model.vocab = 12;
    dt_dataset_close(data_open(folder));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, data_folder_make, data_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_chars_are_numbered_by_code_point),
        IN_FOLDER(test_a_character_of_validation_alone_is_in_the_vocabulary),
        IN_FOLDER(test_globs_are_sorted_and_lists_keep_their_order),
        IN_FOLDER(test_a_name_with_brackets_is_found_as_it_is),
        IN_FOLDER(test_the_split_is_the_end_of_the_stream),
        IN_FOLDER(test_bin_files_of_both_formats_are_read),
        IN_FOLDER(test_a_given_vocabulary_is_taken_for_ids),
        IN_FOLDER(test_a_fixed_tokenizer_numbers_as_before),
        IN_FOLDER(test_more_than_256_characters_take_wider_tokens),
        IN_FOLDER(test_a_missing_file_is_named),
        IN_FOLDER(test_what_is_not_a_file_is_refused),
        IN_FOLDER(test_an_unreadable_file_is_named),
        IN_FOLDER(test_broken_utf8_is_reported_with_its_byte),
        IN_FOLDER(test_too_little_data_is_reported_with_numbers),
        IN_FOLDER(test_damaged_bin_headers_are_reported),
        IN_FOLDER(test_an_id_beyond_every_vocabulary_is_reported),
        IN_FOLDER(test_text_and_tokens_do_not_mix),
        IN_FOLDER(test_a_vocabulary_too_small_for_the_text_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
