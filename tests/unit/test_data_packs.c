/* packs: sequences of whole documents; every token is in exactly one, and samplers and validation count it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "data_support.h"
#include "engine/data/data_int.h"

#define T     8
#define COUNT 503
#define END   7

/* Writes documents of 0 to 12 tokens, some longer than T, each with its end. */
static void write_documents(uint16_t *tokens)
{
    uint32_t random = 1;
    int left = 3;

    for (int i = 0; i < COUNT; i++, left--) {
        random = random * 1664525u + 1013904223u;
        tokens[i] = (uint16_t)(left == 0 ? END : 8 + i);
        if (left == 0)
            left = (int)(random >> 16) % 13 + 1;
    }
}

static dt_dataset *open_packed(data_folder *folder, double split)
{
    uint16_t tokens[COUNT];

    write_documents(tokens);
    data_write_uint16(folder, "documents.bin", tokens, COUNT);
    data_train(folder, "documents.bin");
    folder->recipe.data.tokens = DT_TOKENS_NANOGPT;
    folder->recipe.batch.tokens = T;
    folder->recipe.data.cross_documents = false;
    folder->recipe.data.end_of_text = END;
    folder->recipe.data.pack = true;
    folder->recipe.data.split = split;
    return data_open(folder);
}

/* Checks the sequences of T that documents of these lengths (with their ends) give. */
static void expect_packs(const int *documents, size_t count, const int64_t *lengths,
                         int64_t sequences)
{
    unsigned char tokens[256];
    dt_token_piece piece = {.tokens = tokens, .width_bytes = 1};
    dt_token_stream stream;
    dt_packs packs;

    for (size_t d = 0; d < count; d++) {
        for (int i = 0; i + 1 < documents[d]; i++)
            tokens[piece.count++] = 9;
        tokens[piece.count++] = END;
    }
    assert_int_equal(dt_token_stream_init(&stream, 1, NULL), DT_OK);
    dt_token_stream_add(&stream, &piece);
    assert_int_equal(dt_packs_make(&packs, &stream, 0, piece.count, T, END, NULL), DT_OK);
    assert_int_equal(packs.count, sequences);
    for (int64_t i = 0; i < sequences; i++)
        assert_int_equal(dt_packs_length(&packs, i), lengths[i]);
    assert_int_equal(packs.starts[packs.count], piece.count);
    dt_packs_release(&packs);
    dt_token_stream_release(&stream);
}

#define PACKS(documents, lengths)                                                \
    expect_packs(documents, sizeof(documents) / sizeof((documents)[0]), lengths, \
                 sizeof(lengths) / sizeof((lengths)[0]))

static void test_documents_fill_sequences_in_their_order(void **state)
{
    static const int fits[] = {3, 5, 8, 1, 1, 6}, gaps[] = {5, 4, 4, 7, 2}, one[] = {2};
    static const int64_t fit[] = {8, 8, 8}, gap[] = {5, 8, 7, 2}, alone[] = {2};

    PACKS(fits, fit);
    PACKS(gaps, gap);
    PACKS(one, alone);
}

static void test_only_a_document_over_the_context_is_cut(void **state)
{
    static const int longer[] = {3, 9, 2, 20, 4, 1}, exact[] = {16, 8}, much[] = {100};
    static const int64_t longs[] = {3, 8, 3, 8, 8, 8, 1}, exacts[] = {8, 8, 8};
    static const int64_t muchs[] = {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 4};

    PACKS(longer, longs);
    PACKS(exact, exacts);
    PACKS(much, muchs);
}

typedef struct sample {
    int32_t tokens[T], targets[T], starts[T], positions[T];
} sample;

/* Tokens other than END are 8 + their place. Marks the places; returns the targets that count. */
static int64_t check(const sample *s, char *seen)
{
    int64_t counted = 0;

    for (int t = 0; t < T; t++) {
        assert_int_equal(s->positions[t], t - s->starts[t]);
        if (s->tokens[t] == END) {
            assert_int_equal(s->targets[t], -1);
            continue;
        }
        assert_int_equal(seen[s->tokens[t] - 8]++, 0);
        if (t > 0 && s->tokens[t - 1] != END)
            assert_int_equal(s->tokens[t], s->tokens[t - 1] + 1);
        if (s->targets[t] >= 0)
            assert_true(s->targets[t] == END || s->targets[t] == s->tokens[t] + 1);
        counted += s->targets[t] >= 0;
    }
    return counted;
}

static void test_an_epoch_has_every_token_once(void **state)
{
    dt_dataset *dataset = open_packed(*state, 0.1);
    int64_t epochs[2] = {0, 0};
    dt_sampler sampler;

    assert_int_equal(dt_sampler_init(&sampler, dataset, T, 3, NULL), DT_OK);
    for (int epoch = 0; epoch < 2; epoch++) {
        int64_t samples = dt_sampler_epoch_samples(&sampler);
        char seen[COUNT] = {0};

        assert_int_equal(sampler.epoch, epoch);
        for (int64_t i = 0; i < samples; i++) {
            void *inputs[4];
            sample s;
            int64_t counted;

            inputs[0] = s.tokens, inputs[1] = s.targets, inputs[2] = s.starts,
            inputs[3] = s.positions;
            assert_int_equal(dt_sampler_fill(&sampler, inputs, i, 1, NULL), DT_OK);
            counted = check(&s, seen);
            assert_int_equal(counted, dt_sampler_valid_targets(&sampler, i, 1));
            epochs[epoch] += counted;
        }
        for (int64_t i = 0; i < dataset->train_count; i++) {
            int32_t token;

            dt_token_stream_read(&token, &dataset->train, i, 1);
            assert_int_equal(seen[i], token != END);
        }
        assert_int_equal(epochs[epoch], dt_sampler_valid_targets(&sampler, 0, samples));
        assert_int_equal(dt_sampler_advance(&sampler, samples, NULL), DT_OK);
    }
    assert_int_equal(epochs[0], epochs[1]);
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

/* The numbers shown before a run. */
static void test_what_is_known_before_agrees(void **state)
{
    dt_dataset *dataset = open_packed(*state, 0.1);
    const data_folder *folder = *state;
    dt_dataset_facts facts;
    dt_sampler sampler, counted;

    assert_int_equal(dt_dataset_check(&facts, &folder->recipe, NULL, NULL), DT_OK);
    assert_int_equal(facts.train_packs, dataset->packs.count);
    assert_int_equal(dt_sampler_init(&sampler, dataset, T, 3, NULL), DT_OK);
    dt_sampler_count_known(&counted, facts.train_packs, true, 3);
    for (int64_t epochs = 1; epochs < 5; epochs++)
        assert_int_equal(dt_sampler_epoch_steps(&counted, epochs, 7),
                         dt_sampler_epoch_steps(&sampler, epochs, 7));
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

static void test_validation_is_packed_too(void **state)
{
    dt_dataset *dataset = open_packed(*state, 0.4);
    int64_t count = dt_validation_count(dataset, T), ours = 0;
    char seen[COUNT] = {0};

    for (int64_t i = -1; i < count; i++) {
        sample s;
        void *inputs[] = {s.tokens, s.targets, s.starts, s.positions};

        assert_int_equal(dt_validation_fill(dataset, T, i, inputs, 0, NULL), DT_OK);
        if (i < 0)
            assert_int_equal(check(&s, seen), 0);
        else
            (void)check(&s, seen);
    }
    for (int64_t i = 0; i < COUNT; i++)
        ours += seen[i];
    assert_true(ours > dataset->valid_count / 2);
    for (int64_t i = 0; i < dataset->valid_start; i++)
        assert_int_equal(seen[i], 0);
    dt_dataset_close(dataset);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, data_folder_make, data_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents_fill_sequences_in_their_order),
        cmocka_unit_test(test_only_a_document_over_the_context_is_cut),
        IN_FOLDER(test_an_epoch_has_every_token_once),
        IN_FOLDER(test_what_is_known_before_agrees),
        IN_FOLDER(test_validation_is_packed_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
