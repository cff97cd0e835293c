/* Sentence pairs: batches of similar length, in an order that does not depend on the ranks; padding, resume, refusals.
 * Pair i has the source 10 + i, 10 + i, ... and the target 1000 + i, ..., so that an id identifies its pair; each ends
 * with 2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data_support.h"
#include "engine/data/data.h"
#include "engine/data/sentences.h"
#include "engine/data/sides.h"

enum { PAIRS = 500, LONGEST = 20, MOST = 64, VOCAB = 2000 };

static int64_t length_of(int64_t pair, dt_language language)
{
    return 2 + (pair * (language == DT_SOURCE ? 7 : 11) + pair / 13) % (LONGEST - 1);
}

static void write_pairs(const data_folder *folder, const char *name, int64_t count)
{
    int64_t *starts[DT_LANGUAGES];
    int32_t ids[LONGEST];
    dt_strbuf bytes;

    dt_strbuf_init(&bytes);
    for (int l = 0; l < DT_LANGUAGES; l++) {
        starts[l] = calloc((size_t)count + 1, sizeof(int64_t));
        assert_non_null(starts[l]);
        for (int64_t i = 0; i < count; i++)
            starts[l][i + 1] = starts[l][i] + length_of(i, (dt_language)l);
    }
    dt_sentences_head(&bytes, count, 2, (const int64_t *const[]){starts[0], starts[1]});
    for (int l = 0; l < DT_LANGUAGES; l++)
        for (int64_t i = 0; i < count; i++) {
            int64_t length = length_of(i, (dt_language)l);

            for (int64_t t = 0; t + 1 < length; t++)
                ids[t] = (int32_t)((l == DT_SOURCE ? 10 : 1000) + i);
            ids[length - 1] = 2;
            dt_sentences_ids(&bytes, 2, ids, length);
        }
    data_write(folder, name, bytes.data, bytes.length);
    for (int l = 0; l < DT_LANGUAGES; l++)
        free(starts[l]);
    dt_strbuf_release(&bytes);
}

/* Writes a dictionary of `words` words for both languages. */
static void write_tokenizer(data_folder *folder, int words)
{
    dt_strbuf dictionary, text;
    json_t *file;

    dt_strbuf_init(&dictionary);
    dt_strbuf_init(&text);
    for (int i = 0; i < words - DT_DICTIONARY_SPECIALS; i++)
        dt_strbuf_add_fmt(&dictionary, "w%d 1\n", i);
    file =
        json_pack("{s:i, s:o}", "version", 1, "source", dt_side_of_dictionary(&dictionary, NULL));
    dt_json_write(&text, file);
    data_write(folder, "translation.json", text.data, text.length);
    folder->recipe.data.tokenizer =
        dt_arena_printf(&folder->names, "%s/translation.json", folder->path);
    json_decref(file);
    dt_strbuf_release(&dictionary);
    dt_strbuf_release(&text);
}

static void make_folder(data_folder *folder)
{
    write_pairs(folder, "train.pairs", PAIRS);
    write_tokenizer(folder, VOCAB);
    data_train(folder, "train.pairs");
    folder->recipe.data.tokens = DT_TOKENS_PAIRS;
    folder->recipe.batch.tokens = LONGEST;
    folder->recipe.batch.max_tokens = MOST;
    folder->recipe.seed = 7;
}

typedef struct batch {
    dt_pair_shape shape;
    int32_t source[MOST], previous[MOST], targets[MOST];
} batch;

static void take(batch *out, dt_sampler *sampler, int64_t first)
{
    memset(out, 0x55, sizeof(*out));
    assert_int_equal(dt_sampler_fill_group(sampler, &out->shape,
                                           (void *[]){out->source, out->previous, out->targets},
                                           first, NULL),
                     DT_OK);
}

/* Returns the pair of row b after checking the whole row. Adds the targets that count. */
static int64_t check_row(const batch *made, int64_t b, int64_t *counted)
{
    int64_t pair = made->source[b * made->shape.source] - 10;
    int64_t source = length_of(pair, DT_SOURCE), target = length_of(pair, DT_TARGET);

    for (int64_t s = 0; s < made->shape.source; s++)
        assert_int_equal(made->source[b * made->shape.source + s], s < source - 1    ? 10 + pair
                                                                   : s == source - 1 ? 2
                                                                                     : 1);
    for (int64_t t = 0; t < made->shape.target; t++) {
        int64_t at = b * made->shape.target + t;

        assert_int_equal(made->targets[at], t < target - 1    ? 1000 + pair
                                            : t == target - 1 ? 2
                                                              : -1);
        assert_int_equal(made->previous[at], t == 0 ? 2 : t < target ? 1000 + pair : 1);
        *counted += made->targets[at] >= 0;
    }
    return pair;
}

static void test_an_epoch_has_every_pair_once_in_batches_of_like_length(void **state)
{
    int64_t padded = 0, real = 0, groups;
    bool seen[PAIRS] = {false};
    dt_dataset *dataset;
    dt_sampler sampler;
    batch made;

    make_folder(*state);
    ((data_folder *)*state)->recipe.data.split = 0;
    dataset = data_open(*state);
    assert_int_equal(dt_sampler_init(&sampler, dataset, LONGEST, 7, NULL), DT_OK);
    groups = dt_sampler_epoch_samples(&sampler);
    for (int64_t g = 0; g < groups; g++) {
        int64_t counted = 0;

        take(&made, &sampler, g);
        assert_true(made.shape.samples * made.shape.source <= MOST);
        assert_true(made.shape.samples * made.shape.target <= MOST);
        for (int64_t b = 0; b < made.shape.samples; b++) {
            int64_t pair = check_row(&made, b, &counted);

            assert_false(seen[pair]);
            seen[pair] = true;
        }
        assert_int_equal(dt_sampler_valid_targets(&sampler, g, 1), counted);
        padded += made.shape.samples * made.shape.target;
        real += counted;
    }
    for (int64_t i = 0; i < PAIRS; i++)
        assert_true(seen[i]);
    assert_int_equal(dt_dataset_train_tokens(dataset), real);
    assert_true((double)real > 0.6 * (double)padded); /* source and target lengths differ here */
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

/* Draws the sources of the first `steps` steps as `world` accumulating ranks do, micro-step by
 * micro-step: the order of batches in a step. */
static void draw_all(int32_t *out, const dt_dataset *dataset, int64_t world, int64_t accumulate,
                     int64_t steps)
{
    int64_t at = 0;
    dt_sampler sampler;
    batch made;

    assert_int_equal(dt_sampler_init(&sampler, dataset, LONGEST, 7, NULL), DT_OK);
    for (int64_t s = 0; s < steps; s++) {
        for (int64_t m = 0; m < accumulate; m++)
            for (int64_t r = 0; r < world; r++) {
                take(&made, &sampler, m * world + r);
                out[at++] = made.source[0];
            }
        assert_int_equal(dt_sampler_advance(&sampler, world * accumulate, NULL), DT_OK);
    }
    dt_sampler_release(&sampler);
}

static void test_the_order_is_the_same_for_every_number_of_ranks(void **state)
{
    enum { BATCHES = 480 };
    int32_t one[BATCHES], other[BATCHES];
    dt_dataset *dataset;

    make_folder(*state);
    dataset = data_open(*state);
    draw_all(one, dataset, 1, 1, BATCHES);
    for (int64_t world = 2; world <= 4; world++)
        for (int64_t accumulate = 1; accumulate <= 2; accumulate++) {
            draw_all(other, dataset, world, accumulate, BATCHES / (world * accumulate));
            assert_memory_equal(one, other, sizeof(one));
        }
    dt_dataset_close(dataset);
}

static void test_epochs_and_seeds_differ_and_a_position_does_not(void **state)
{
    dt_dataset *dataset;
    dt_sampler sampler, again;
    int64_t groups, differ = 0;
    batch first, second;

    make_folder(*state);
    dataset = data_open(*state);
    assert_int_equal(dt_sampler_init(&sampler, dataset, LONGEST, 7, NULL), DT_OK);
    assert_int_equal(dt_sampler_init(&again, dataset, LONGEST, 7, NULL), DT_OK);
    groups = dt_sampler_epoch_samples(&sampler);
    for (int64_t g = 0; g < groups; g++) {
        take(&first, &sampler, g);
        take(&second, &sampler, groups + g); /* of the next epoch */
        differ += first.source[0] != second.source[0];
    }
    assert_true(differ > groups / 2);
    assert_int_equal(dt_sampler_advance(&sampler, groups + 5, NULL), DT_OK);
    assert_int_equal(sampler.epoch, 1);
    assert_int_equal(sampler.sample, 5);
    assert_int_equal(dt_sampler_seek(&again, 1, 5, NULL), DT_OK);
    for (int64_t g = 0; g < 10; g++) {
        take(&first, &sampler, g);
        take(&second, &again, g);
        assert_memory_equal(&first, &second, sizeof(first));
    }
    assert_int_equal(dt_sampler_seek(&again, 1, groups + 1, NULL), DT_ERR_RECIPE);
    dt_sampler_release(&sampler);
    dt_sampler_release(&again);
    dt_dataset_close(dataset);
}

static void test_equal_lengths_stand_in_an_order_of_the_seed(void **state)
{
    data_folder *folder = *state;
    dt_dataset *dataset;
    int64_t groups[2], differ = 0;
    int32_t rows[2][PAIRS];

    make_folder(folder);
    folder->recipe.data.split = 0;
    for (int s = 0; s < 2; s++) {
        dt_sampler sampler;
        int64_t at = 0;
        batch made;

        folder->recipe.seed = 7 + s;
        dataset = data_open(folder);
        assert_int_equal(dt_sampler_init(&sampler, dataset, LONGEST, 7, NULL), DT_OK);
        groups[s] = dt_sampler_epoch_samples(&sampler);
        for (int64_t g = 0; g < groups[s]; g++) { /* the sampler draws the same */
            take(&made, &sampler, g);
            for (int64_t b = 0; b < made.shape.samples; b++)
                rows[s][at++] = made.source[b * made.shape.source];
        }
        assert_int_equal(at, PAIRS);
        dt_sampler_release(&sampler);
        dt_dataset_close(dataset);
    }
    assert_int_equal(groups[0], groups[1]); /* the number depends on the lengths alone */
    for (int64_t i = 0; i < PAIRS; i++)
        differ += rows[0][i] != rows[1][i];
    assert_true(differ > PAIRS / 4);
}

static void test_steps_of_epochs_are_known_before(void **state)
{
    dt_recipe recipe = {.schedule = {.epochs = 3}};
    dt_sampler sampler, counted;
    dt_dataset_facts facts;
    dt_dataset *dataset;
    int64_t groups, steps = 0;

    make_folder(*state);
    dataset = data_open(*state);
    assert_int_equal(dt_dataset_check(&facts, &((data_folder *)*state)->recipe, NULL, NULL), DT_OK);
    assert_int_equal(dt_sampler_init(&sampler, dataset, LONGEST, 7, NULL), DT_OK);
    groups = dt_sampler_epoch_samples(&sampler);
    assert_int_equal(facts.train_groups, groups);
    assert_int_equal(facts.train_tokens, dt_dataset_train_tokens(dataset));
    assert_int_equal(facts.pairs, PAIRS * 9 / 10);
    assert_int_equal(facts.vocab, VOCAB);
    dt_sampler_count(&counted, facts.train_groups, 1, 0, 7);
    for (int64_t step_samples = 1; step_samples <= 6; step_samples++) {
        assert_int_equal(dt_budget_steps(&recipe, &counted, step_samples, NULL),
                         (3 * groups + step_samples - 1) / step_samples);
    }
    for (; sampler.epoch < 3; steps++)
        assert_int_equal(dt_sampler_advance(&sampler, 4, NULL), DT_OK);
    assert_int_equal(steps, dt_budget_steps(&recipe, &counted, 4, NULL));
    assert_int_equal(dt_sampler_set_tail(&sampler, DT_TAIL_DROP, groups + 1, NULL), DT_ERR_RECIPE);
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

static void test_validation_has_every_pair_once(void **state)
{
    data_folder *folder = *state;
    int64_t counted = 0, pairs = 0;
    bool seen[PAIRS] = {false};
    dt_dataset *dataset;
    batch made;

    make_folder(folder);
    write_pairs(folder, "valid.pairs", 77);
    data_validate(folder, "valid.pairs");
    dataset = data_open(folder);
    for (int64_t g = 0; g < dt_validation_count(dataset, LONGEST); g++) {
        void *inputs[] = {made.source, made.previous, made.targets};

        assert_int_equal(dt_validation_fill_group(dataset, g, &made.shape, inputs, NULL), DT_OK);
        for (int64_t b = 0; b < made.shape.samples; b++, pairs++) {
            int64_t pair = check_row(&made, b, &counted);

            assert_false(seen[pair]);
            seen[pair] = true;
        }
    }
    assert_int_equal(pairs, 77);
    assert_int_equal(dt_dataset_valid_pairs(dataset), 77);
    assert_int_equal(dt_dataset_valid_tokens(dataset), counted);
    assert_int_equal(dt_validation_fill_group(dataset, -1, &made.shape,
                                              (void *[]){made.source, made.previous, made.targets},
                                              NULL),
                     DT_OK);
    assert_int_equal(made.shape.samples * made.shape.source * made.shape.target, 1);
    assert_int_equal(made.source[0], 2);
    assert_int_equal(made.targets[0], -1);
    dt_dataset_close(dataset);
}

static void test_pairs_over_the_limit_are_counted_and_refused_or_left_out(void **state)
{
    data_folder *folder = *state;
    dt_dataset_facts facts;
    int64_t kept = 0;

    make_folder(folder);
    folder->recipe.data.split = 0;
    folder->recipe.batch.tokens = 15;
    for (int64_t i = 0; i < PAIRS; i++)
        kept += length_of(i, DT_SOURCE) <= 15 && length_of(i, DT_TARGET) <= 15;
    data_refuse(folder, "of 500 sentence pairs are longer than batch.tokens 15",
                "the first is pair ", "source and ", "data.too_long: drop", NULL);
    folder->recipe.data.too_long = DT_TOO_LONG_DROP;
    assert_int_equal(dt_dataset_check(&facts, &folder->recipe, NULL, NULL), DT_OK);
    assert_int_equal(facts.pairs, kept);
    assert_int_equal(facts.too_long, PAIRS - kept);
    folder->recipe.batch.max_tokens = 10;
    folder->recipe.data.too_long = DT_TOO_LONG_REFUSE;
    data_refuse(folder, "are longer than batch.max_tokens 10", NULL);
    folder->recipe.batch.max_tokens = 1;
    folder->recipe.data.too_long = DT_TOO_LONG_DROP;
    data_refuse(folder, "none is left", NULL);
    folder->recipe.batch.max_tokens = 0;
    data_refuse(folder, "need batch.max_tokens", NULL);
}

static void test_damaged_files_are_refused_by_name(void **state)
{
    data_folder *folder = *state;
    static const char text[] = "ein haus\n";
    int64_t starts[] = {0, 2, 2, 5};
    const int64_t *const both[] = {starts, starts};
    dt_strbuf bytes;

    make_folder(folder);
    folder->items[0][0] = dt_arena_printf(&folder->names, "%s/other.pairs", folder->path);
    data_write(folder, "other.pairs", text, sizeof(text) - 1);
    data_refuse(folder, "other.pairs' is not a file of sentence pairs", NULL);
    dt_strbuf_init(&bytes);
    dt_sentences_head(&bytes, 3, 2, both);
    data_write(folder, "other.pairs", bytes.data, bytes.length);
    data_refuse(folder, "other.pairs' is cut off or damaged", NULL);
    dt_sentences_ids(&bytes, 2, (int32_t[]){1, 2, 3, 4, 5, 1, 2, 3, 4, 5}, 10);
    data_write(folder, "other.pairs", bytes.data, bytes.length);
    data_refuse(folder, "other.pairs' is damaged", NULL); /* a sentence without an id */
    bytes.data[7] = 9;
    data_write(folder, "other.pairs", bytes.data, bytes.length);
    data_refuse(folder, "unsupported version 9 (expected 1)", NULL);
    dt_strbuf_release(&bytes);
}

static void test_ids_beyond_the_vocabulary_are_named(void **state)
{
    data_folder *folder = *state;
    dt_error err = DT_ERROR_INIT;
    dt_dataset *dataset;
    dt_sampler sampler;
    dt_status st = DT_OK;
    batch made;

    make_folder(folder);
    write_tokenizer(folder, 1200);
    dataset = data_open(folder);
    assert_int_equal(dt_sampler_init(&sampler, dataset, LONGEST, 7, NULL), DT_OK);
    for (int64_t g = 0; st == DT_OK && g < dt_sampler_epoch_samples(&sampler); g++)
        st = dt_sampler_fill_group(&sampler, &made.shape,
                                   (void *[]){made.source, made.previous, made.targets}, g, &err);
    assert_int_equal(st, DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "the target has the token 1"));
    assert_non_null(strstr(err.message, "the vocabulary 1200"));
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

static void test_the_tokenizer_is_copied_completely(void **state)
{
    data_folder *folder = *state;
    dt_tokenizer *read, *back;
    dt_dataset *dataset;
    dt_error err = DT_ERROR_INIT;
    int64_t count;
    int32_t *ids;
    json_t *json;
    dt_strbuf text;

    make_folder(folder);
    assert_int_equal(dt_tokenizer_pairs_read(&read, folder->recipe.data.tokenizer, NULL), DT_OK);
    json = dt_tokenizer_to_json(read);
    assert_int_equal(dt_tokenizer_from_json(&back, json, NULL), DT_OK);
    assert_int_equal(dt_tokenizer_load(back, folder->path, &err), DT_OK);
    assert_int_equal(dt_tokenizer_encode(&ids, &count, back, "w0  w5 x", 8, NULL), DT_OK);
    assert_int_equal(count, 4);
    assert_memory_equal(ids, ((int32_t[]){4, 9, 3, 2}), 4 * sizeof(*ids));
    dt_strbuf_init(&text);
    for (int64_t i = 0; i < count; i++)
        dt_tokenizer_decode(&text, back, ids[i]);
    assert_string_equal(text.data, "w0 w5 <unk> ");
    assert_int_equal(dt_dataset_open(&dataset, &folder->recipe, back, &err), DT_OK);
    dt_dataset_close(dataset);
    write_tokenizer(folder, VOCAB + 1);
    assert_int_equal(dt_dataset_open(&dataset, &folder->recipe, back, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "trained with another tokenizer"));
    json_decref(json);
    free(ids);
    dt_strbuf_release(&text);
    dt_tokenizer_free(read);
    dt_tokenizer_free(back);
}

#define WITH_FOLDER(test) \
    cmocka_unit_test_setup_teardown(test, data_folder_make, data_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_an_epoch_has_every_pair_once_in_batches_of_like_length),
        WITH_FOLDER(test_the_order_is_the_same_for_every_number_of_ranks),
        WITH_FOLDER(test_epochs_and_seeds_differ_and_a_position_does_not),
        WITH_FOLDER(test_equal_lengths_stand_in_an_order_of_the_seed),
        WITH_FOLDER(test_steps_of_epochs_are_known_before),
        WITH_FOLDER(test_validation_has_every_pair_once),
        WITH_FOLDER(test_pairs_over_the_limit_are_counted_and_refused_or_left_out),
        WITH_FOLDER(test_damaged_files_are_refused_by_name),
        WITH_FOLDER(test_ids_beyond_the_vocabulary_are_named),
        WITH_FOLDER(test_the_tokenizer_is_copied_completely),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
