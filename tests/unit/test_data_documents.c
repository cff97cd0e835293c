/* documents: document starts in a sample, and their use by samplers and validation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "data_support.h"
#include "engine/data/stream.h"

#define T     8
#define COUNT 503
#define END   7

/* Writes documents of 0 to 12 tokens, each followed by END; no other token equals END. */
static void write_documents(const data_folder *folder, const char *name)
{
    uint16_t tokens[COUNT];
    uint32_t random = 1;
    int left = 3;

    for (int i = 0; i < COUNT; i++, left--) {
        random = random * 1664525u + 1013904223u;
        tokens[i] = (uint16_t)(left == 0 ? END : 8 + random % 50);
        if (left == 0)
            left = (int)(random >> 16) % 13 + 1;
    }
    data_write_uint16(folder, name, tokens, COUNT);
}

static dt_dataset *open_documents(data_folder *folder)
{
    write_documents(folder, "documents.bin");
    data_train(folder, "documents.bin");
    folder->recipe.data.tokens = DT_TOKENS_NANOGPT;
    folder->recipe.batch.tokens = T;
    folder->recipe.data.cross_documents = false;
    folder->recipe.data.end_of_text = END;
    return data_open(folder);
}

typedef struct sample {
    int32_t tokens[T], targets[T], starts[T], positions[T];
} sample;

/* Checks by the definition: a document starts after the last END before the place. Returns the targets that count. */
static int64_t check(const sample *s)
{
    int64_t counted = 0;

    for (int t = 0; t < T; t++) {
        int start = t;

        while (start > 0 && s->tokens[start - 1] != END)
            start--;
        assert_int_equal(s->starts[t], start);
        assert_int_equal(s->positions[t], t - start);
        if (s->tokens[t] == END)
            assert_int_equal(s->targets[t], -1);
        counted += s->targets[t] >= 0;
    }
    return counted;
}

static void test_marks_of_one_sample(void **state)
{
    static const int32_t tokens[] = {END, 10, 11, END, END, 12, 13, 14};
    static const int32_t starts[] = {0, 1, 1, 1, 4, 5, 5, 5};
    static const int32_t positions[] = {0, 0, 1, 2, 0, 0, 1, 2};
    static const int32_t wanted[] = {-1, 11, END, -1, -1, 13, 14, 15};
    int32_t targets[] = {10, 11, END, END, 12, 13, 14, 15}, got[2][T];

    dt_documents_mark(targets, got[0], got[1], tokens, T, END);
    assert_memory_equal(got[0], starts, sizeof(starts));
    assert_memory_equal(got[1], positions, sizeof(positions));
    assert_memory_equal(targets, wanted, sizeof(wanted));
}

static void test_the_divisor_of_a_step_counts_its_targets(void **state)
{
    dt_dataset *dataset = open_documents(*state);
    dt_sampler sampler;
    int64_t less = 0;

    assert_int_equal(dt_sampler_init(&sampler, dataset, T, 3, NULL), DT_OK);
    for (int step = 0; step < 30; step++) { /* over several epochs */
        int64_t counted = 0, told = dt_sampler_valid_targets(&sampler, 0, 6);

        assert_int_equal(told, dt_sampler_valid_targets(&sampler, 0, 2) +
                                   dt_sampler_valid_targets(&sampler, 2, 4));
        for (int64_t i = 0; i < 6; i++) {
            sample s;

            assert_int_equal(dt_sampler_fill(&sampler,
                                             (void *[]){s.tokens, s.targets, s.starts, s.positions},
                                             i, 1, NULL),
                             DT_OK);
            counted += check(&s);
        }
        assert_int_equal(told, counted);
        less += counted < 6 * T;
        assert_int_equal(dt_sampler_advance(&sampler, 6, NULL), DT_OK);
    }
    assert_true(sampler.epoch > 1);
    assert_int_equal(less, 30);
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

static void test_validation_has_documents_too(void **state)
{
    dt_dataset *dataset = open_documents(*state);
    int64_t count = dt_validation_count(dataset, T);

    for (int64_t i = -1; i < count; i++) {
        sample s[2];

        assert_int_equal(
            dt_validation_fill(dataset, T, i,
                               (void *[]){s[0].tokens, s[0].targets, s[0].starts, s[0].positions},
                               0, NULL),
            DT_OK);
        assert_true(check(&s[0]) > 0 || i < 0);
    }
    dt_dataset_close(dataset);
}

static void test_the_end_of_documents_is_known_or_required(void **state)
{
    data_folder *folder = *state;

    write_documents(folder, "documents.bin");
    data_train(folder, "documents.bin");
    folder->recipe.data.tokens = DT_TOKENS_NANOGPT;
    folder->recipe.data.cross_documents = false;
    data_refuse(folder, "data.cross_documents", "data.end_of_text", NULL);
    folder->recipe.data.end_of_text = 4000;
    data_refuse(folder, "data.end_of_text is 4000", "58 tokens", NULL);
    folder->recipe.model.vocab = 5000;
    dt_dataset_close(data_open(folder));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, data_folder_make, data_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks_of_one_sample),
        IN_FOLDER(test_the_divisor_of_a_step_counts_its_targets),
        IN_FOLDER(test_validation_has_documents_too),
        IN_FOLDER(test_the_end_of_documents_is_known_or_required),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
