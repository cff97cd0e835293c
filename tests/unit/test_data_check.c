/* check: small files are read, of large ones only a part. Large files are sparse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data_support.h"

#define LARGE_BYTES ((int64_t)80 << 20)

/* Extends a file by a hole, and writes bytes after it. */
static void lengthen(const data_folder *folder, const char *name, int64_t bytes, const void *tail,
                     size_t tail_length)
{
    char path[256];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", folder->path, name);
    fd = open(path, O_WRONLY | O_CREAT, 0644);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, bytes), 0);
    if (tail_length > 0)
        assert_int_equal(pwrite(fd, tail, tail_length, bytes - (int64_t)tail_length), tail_length);
    assert_int_equal(close(fd), 0);
}

static void expect(const data_folder *folder, dt_status wanted, int64_t wanted_vocab,
                   const char *word)
{
    dt_error err = DT_ERROR_INIT;
    dt_dataset_facts facts = {.vocab = -1};

    if (dt_dataset_check(&facts, &folder->recipe, NULL, &err) != wanted)
        fail_msg("%s", err.message);
    if (wanted == DT_OK)
        assert_int_equal(facts.vocab, wanted_vocab);
    else if (strstr(err.message, word) == NULL)
        fail_msg("no '%s' in: %s", word, err.message);
}

static void test_small_data_tell_their_vocabulary(void **state)
{
    data_folder *folder = *state;
    static const uint16_t tokens[] = {1, 2, 300, 4, 5, 6};

    data_write_text(folder, "train.txt", "abcabcabc\n");
    data_write_uint16(folder, "train.bin", tokens, 6);
    folder->recipe.data.split = 0;
    data_train(folder, "train.txt");
    expect(folder, DT_OK, 4, "");
    folder->recipe.data.tokens = DT_TOKENS_BYTE;
    expect(folder, DT_OK, 256, "");
    folder->recipe.data.tokens = DT_TOKENS_AUTO;
    folder->recipe.data.train.count = 0;
    data_train(folder, "train.bin");
    expect(folder, DT_OK, 301, "");
}

static void test_of_a_large_text_the_beginning_is_read(void **state)
{
    data_folder *folder = *state;
    size_t length = ((size_t)1 << 20) + 1; /* the part that is read ends inside a character */
    char *text = malloc(length);

    assert_non_null(text);
    for (size_t i = 0; i < length; i++)
        text[i] = i == 0 ? 'a' : i % 2 == 1 ? '\xc3' : '\xa9';
    data_write(folder, "train.txt", text, length);
    lengthen(folder, "train.txt", LARGE_BYTES, "", 0);
    data_train(folder, "train.txt");
    expect(folder, DT_OK, 0, "");
    text[777777] = 'x';
    data_write(folder, "train.txt", text, length);
    lengthen(folder, "train.txt", LARGE_BYTES, "", 0);
    expect(folder, DT_ERR_RECIPE, 0, "byte 777778 is not UTF-8");
    free(text);
}

static void test_of_large_bytes_and_ids_the_sizes_are_checked(void **state)
{
    data_folder *folder = *state;
    static const uint32_t none[1];

    data_write_llmc(folder, "train.bin", 20240520, 1, 1000, 2, none, 1);
    lengthen(folder, "train.bin", LARGE_BYTES, "", 0);
    data_train(folder, "train.bin");
    expect(folder, DT_ERR_RECIPE, 0, "header says 1000 tokens");
    folder->recipe.data.tokens = DT_TOKENS_BYTE;
    expect(folder, DT_OK, 256, "");
    folder->recipe.model.vocab = 255;
    expect(folder, DT_ERR_RECIPE, 0, "model.vocab is 255");
    folder->recipe.data.tokens = DT_TOKENS_AUTO;
    folder->recipe.model.vocab = 0;
    folder->recipe.data.train.count = 0;
    data_train(folder, "large.bin");
    lengthen(folder, "large.bin", LARGE_BYTES, "", 0);
    expect(folder, DT_OK, 0, "");
    folder->recipe.model.vocab = 50257;
    expect(folder, DT_OK, 50257, "");
    folder->recipe.batch.tokens = LARGE_BYTES / 2;
    expect(folder, DT_ERR_RECIPE, 0, "fewer than the 41943041");
    lengthen(folder, "large.bin", LARGE_BYTES + 1, "", 0);
    expect(folder, DT_ERR_RECIPE, 0, "tokens of 2 bytes");
}

/* The last token is beyond the vocabulary, and too far from the start to be read by the check. */
static void test_a_wrong_id_at_the_end_of_large_data_is_met_when_drawn(void **state)
{
    data_folder *folder = *state;
    int64_t count = ((int64_t)1 << 26) + 1000;
    const uint16_t wrong = 60000;
    int32_t *tokens = malloc(sizeof(*tokens) * 2000);
    dt_error err = DT_ERROR_INIT;
    dt_dataset *dataset;
    dt_sampler sampler;

    assert_non_null(tokens);
    lengthen(folder, "train.bin", count * 2, &wrong, sizeof(wrong));
    data_train(folder, "train.bin");
    folder->recipe.model.vocab = 50257;
    folder->recipe.data.split = 1000.0 / (double)count;
    dataset = data_open(folder);
    assert_int_equal(
        dt_validation_fill(dataset, 100, 0, (void *[]){tokens, tokens + 1000}, 0, NULL), DT_OK);
    assert_int_equal(dt_validation_fill(dataset, 100, dt_validation_count(dataset, 100) - 1,
                                        (void *[]){tokens, tokens + 1000}, 0, &err),
                     DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "train.bin"));
    assert_non_null(strstr(err.message, "is 60000"));
    dt_dataset_close(dataset);

    folder->recipe.data.split = 0;
    folder->recipe.batch.tokens = count - 1; /* one sequence of all tokens */
    free(tokens);
    tokens = malloc(sizeof(*tokens) * (size_t)count);
    assert_non_null(tokens);
    dataset = data_open(folder);
    assert_int_equal(dt_sampler_init(&sampler, dataset, count - 1, 1, NULL), DT_OK);
    dt_error_clear(&err);
    assert_int_equal(dt_sampler_fill(&sampler, (void *[]){tokens, tokens}, 0, 1, &err),
                     DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "token number 67109863 is 60000"));
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
    free(tokens);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, data_folder_make, data_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_small_data_tell_their_vocabulary),
        IN_FOLDER(test_of_a_large_text_the_beginning_is_read),
        IN_FOLDER(test_of_large_bytes_and_ids_the_sizes_are_checked),
        IN_FOLDER(test_a_wrong_id_at_the_end_of_large_data_is_met_when_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
