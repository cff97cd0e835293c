/* mixture: parts that are drawn in the shares of their weights. Each part is a file of consecutive ids in uint16, those
 * of part p from p * SPACE on, so that a sequence tells its part and its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <string.h>

#include "data_support.h"
#include "engine/data/data_int.h"
#include "engine/data/fingerprint.h"

#define T     4
#define SPACE 10000

static dt_mixture_part parts[3];
static const char *const names[] = {"one", "two", "three"};

/* Adds a part of `tokens` ids in `files` files. */
static void add_part(data_folder *folder, int64_t tokens, int64_t files, double weight)
{
    int64_t index = folder->recipe.data.mixture.count++;
    uint16_t *ids = calloc((size_t)tokens, sizeof(*ids));
    char name[32];

    assert_non_null(ids);
    for (int64_t i = 0; i < tokens; i++)
        ids[i] = (uint16_t)(index * SPACE + i);
    for (int64_t f = 0; f < files; f++) {
        int64_t from = tokens * f / files;

        snprintf(name, sizeof(name), "%d-%d.bin", (int)index, (int)f);
        data_write_uint16(folder, name, ids + from, tokens * (f + 1) / files - from);
        data_train(folder, name);
    }
    parts[index] = (dt_mixture_part){names[index],
                                     {folder->recipe.data.train.items, files},
                                     weight}; /* only the count is read */
    folder->recipe.data.mixture.items = parts;
    free(ids);
}

/* Returns the starts of the samples from the position on; checks targets and that none leaves its part. */
static void starts(int64_t *out, dt_sampler *sampler, int64_t first, int64_t count)
{
    int32_t inputs[T], targets[T];

    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(dt_sampler_fill(sampler, (void *[]){inputs, targets}, first + i, 1, NULL),
                         DT_OK);
        out[i] = inputs[0];
        for (int t = 0; t < T; t++) {
            assert_int_equal(inputs[t], inputs[0] + t);
            assert_int_equal(targets[t], inputs[t] + 1);
        }
        assert_int_equal(inputs[0] / SPACE, targets[T - 1] / SPACE);
    }
}

static dt_dataset *open_sampler(dt_sampler *sampler, const data_folder *folder)
{
    dt_dataset *dataset = data_open(folder);

    assert_int_equal(dt_sampler_init(sampler, dataset, T, 7, NULL), DT_OK);
    return dataset;
}

static void test_shares_are_those_of_the_weights_at_every_place(void **state)
{
    static const double shares[] = {0.5, 0.2, 0.3};
    int64_t at[900], drawn[3] = {0};
    data_folder *folder = *state;
    dt_dataset *dataset;
    dt_sampler sampler;

    add_part(folder, 2000, 1, 5);
    add_part(folder, 900, 2, 2);
    add_part(folder, 700, 3, 3);
    folder->recipe.data.split = 0;
    dataset = open_sampler(&sampler, folder);
    assert_int_equal(dt_sampler_epoch_samples(&sampler), 499 + 224 + 174);
    starts(at, &sampler, 0, 897);
    for (int64_t i = 0; i < 897; i++) {
        drawn[at[i] / SPACE]++;
        for (int p = 0; p < 3; p++)
            assert_true((double)drawn[p] - shares[p] * (double)(i + 1) < 1.01 &&
                        shares[p] * (double)(i + 1) - (double)drawn[p] < 1.01);
    }
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

/* A part of 24 sequences and weight 0.9, and one of 249: the first is read again and again. */
static void test_a_part_starts_again_only_at_its_end(void **state)
{
    int64_t at[272 * 3], seen[30] = {0}, of_small = 0;
    data_folder *folder = *state;
    dt_dataset *dataset;
    dt_sampler sampler;
    dt_strbuf text;

    add_part(folder, 101, 1, 0.9);
    add_part(folder, 1001, 1, 0.1);
    folder->recipe.data.split = 0;
    dataset = open_sampler(&sampler, folder);
    assert_int_equal(dt_sampler_epoch_samples(&sampler), 24 + 249);
    for (int e = 0; e < 3; e++) {
        starts(at, &sampler, 0, 273);
        for (int64_t i = 0; i < 273; i++) {
            if (at[i] >= SPACE)
                continue;
            seen[at[i] / T]++;
            if (++of_small % 24 == 0) /* every sequence of its epoch once */
                for (int64_t k = 0, total = 0; k < 26; k++) {
                    total += seen[k];
                    assert_true(seen[k] <= 1);
                    assert_true(k < 25 || total == 24);
                }
            if (of_small % 24 == 0)
                memset(seen, 0, sizeof(seen));
        }
        assert_int_equal(dt_sampler_advance(&sampler, 273, NULL), DT_OK);
    }
    assert_int_equal(of_small, 3 * 246);
    dt_strbuf_init(&text);
    dt_sampler_describe_parts(&text, &sampler);
    assert_string_equal(text.data, "one 738 sequences (30.75 epochs), two 81 (0.3253 epochs)");
    dt_strbuf_release(&text);
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

static void test_a_position_determines_what_follows(void **state)
{
    int64_t whole[600], piece[600];
    data_folder *folder = *state;
    dt_sampler sampler, other;
    dt_dataset *dataset;

    add_part(folder, 300, 1, 1);
    add_part(folder, 500, 1, 2);
    dataset = open_sampler(&sampler, folder);
    starts(whole, &sampler, 0, 600);
    for (int64_t step = 1; step <= 7; step += 3) { /* steps of other numbers of ranks */
        assert_int_equal(dt_sampler_init(&other, dataset, T, 7, NULL), DT_OK);
        for (int64_t done = 0; done + step <= 500; done += step)
            assert_int_equal(dt_sampler_advance(&other, step, NULL), DT_OK);
        starts(piece, &other, 0, 90);
        assert_memory_equal(piece, whole + 500 - 500 % step, sizeof(*piece) * 90);
        assert_int_equal(dt_sampler_seek(&sampler, other.epoch, other.sample, NULL), DT_OK);
        dt_sampler_release(&other);
        starts(piece, &sampler, 0, 90);
        assert_memory_equal(piece, whole + 500 - 500 % step, sizeof(*piece) * 90);
    }
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

/* data.split takes the end of each part, across its files; validation files leave the parts whole. */
static void test_each_part_is_split(void **state)
{
    int32_t inputs[T], targets[T];
    data_folder *folder = *state;
    int64_t ids[2] = {0}, at[300];
    dt_dataset *dataset;
    dt_sampler sampler;

    add_part(folder, 200, 3, 1);
    add_part(folder, 400, 1, 1);
    folder->recipe.data.split = 0.5;
    dataset = open_sampler(&sampler, folder);
    assert_int_equal(dt_dataset_train_tokens(dataset), 300);
    assert_int_equal(dt_dataset_valid_tokens(dataset), 300);
    assert_int_equal(dt_validation_count(dataset, T), 75);
    for (int64_t i = 0; i < 75; i++) {
        assert_int_equal(dt_validation_fill(dataset, T, i, (void *[]){inputs, targets}, 0, NULL),
                         DT_OK);
        ids[inputs[0] / SPACE]++;
        assert_true(inputs[0] % SPACE >= (inputs[0] < SPACE ? 100 : 200));
    }
    assert_int_equal(ids[0], 25);
    assert_int_equal(ids[1], 50);
    starts(at, &sampler, 0, 300);
    for (int i = 0; i < 300; i++)
        assert_true(at[i] % SPACE + T < (at[i] < SPACE ? 100 : 200));
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);

    data_write_uint16(folder, "valid.bin", (uint16_t[]){1, 2, 3, 4, 5, 6}, 6);
    data_validate(folder, "valid.bin");
    dataset = open_sampler(&sampler, folder);
    assert_int_equal(dt_dataset_train_tokens(dataset), 600);
    assert_int_equal(dt_dataset_valid_tokens(dataset), 6);
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

/* A pack has tokens of one part; the last token of a part predicts nothing of the next. */
static void test_packs_stay_in_their_part(void **state)
{
    int32_t inputs[T], targets[T], begins[T], positions[T];
    void *tensors[] = {inputs, targets, begins, positions};
    data_folder *folder = *state;
    dt_dataset *dataset;
    dt_sampler sampler;

    add_part(folder, 50, 1, 1);
    add_part(folder, 30, 1, 1);
    folder->recipe.data.split = 0;
    folder->recipe.data.cross_documents = false;
    folder->recipe.data.pack = true;
    folder->recipe.data.end_of_text = 7;
    dataset = open_sampler(&sampler, folder);
    for (int64_t i = 0; i < dt_sampler_epoch_samples(&sampler); i++) {
        int count = 0;

        assert_int_equal(dt_sampler_fill(&sampler, tensors, i, 1, NULL), DT_OK);
        for (int t = 0; t < T; t++) {
            count += targets[t] >= 0;
            if (targets[t] >= 0)
                assert_int_equal(targets[t], inputs[t] + 1);
            if (inputs[t] == 49 || inputs[t] == SPACE + 29)
                assert_int_equal(targets[t], -1);
        }
        assert_int_equal(dt_sampler_valid_targets(&sampler, i, 1), count);
    }
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

static void test_parts_that_cannot_be_drawn_are_named(void **state)
{
    data_folder *folder = *state;

    add_part(folder, 400, 1, 1e9);
    add_part(folder, 300, 1, 1);
    data_refuse(folder, "'two'", "less than one of the", "raise its weight", NULL);
    parts[1].weight = 1e9;
    add_part(folder, 3, 1, 1e9);
    data_refuse(folder, "data.mixture 'three': ", "data.split", NULL);
    folder->recipe.data.split = 0;
    data_refuse(folder, "data.mixture 'three': ", "fewer than the 5", NULL);
}

static void expect_difference(const data_folder *folder, const json_t *was, const char *words)
{
    dt_strbuf text;
    json_t *is;

    dt_strbuf_init(&text);
    assert_int_equal(dt_fingerprint_make(&is, &folder->recipe, NULL), DT_OK);
    assert_int_equal(dt_fingerprint_differs(&text, was, is), words[0] != '\0');
    assert_string_equal(text.data, words);
    dt_strbuf_release(&text);
    json_decref(is);
}

static void test_a_resume_knows_the_weights(void **state)
{
    data_folder *folder = *state;
    json_t *was;

    add_part(folder, 400, 2, 3);
    add_part(folder, 300, 1, 1);
    assert_int_equal(dt_fingerprint_make(&was, &folder->recipe, NULL), DT_OK);
    parts[0].weight = 0.75;
    parts[1].weight = 0.25;
    parts[0].name = "renamed";
    expect_difference(folder, was, "");
    parts[1].weight = 0.75;
    expect_difference(
        folder, was,
        "data.mixture was 0.75 of 2 files, 0.25 of 1 file, is 0.5 of 2 files, 0.5 of 1 file");
    folder->recipe.data.mixture.count = 0;
    expect_difference(folder, was, "data.mixture was 0.75 of 2 files, 0.25 of 1 file, is none");
    json_decref(was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, data_folder_make, data_folder_remove)
        TEST(test_shares_are_those_of_the_weights_at_every_place),
        TEST(test_a_part_starts_again_only_at_its_end),
        TEST(test_a_position_determines_what_follows),
        TEST(test_each_part_is_split),
        TEST(test_packs_stay_in_their_part),
        TEST(test_parts_that_cannot_be_drawn_are_named),
        TEST(test_a_resume_knows_the_weights),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
