/* An epoch of packed sequences has the losses of each of its documents alone (engine/data/stream.h). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "data_support.h"
#include "engine/data/data_int.h"
#include "tests/unit/model_harness.h"

#define END   3
#define COUNT 240

static dt_model_config config_of(int64_t batch)
{
    dt_model_config config = harness_config();

    config.decoder.documents = true;
    config.batch = batch;
    return config;
}

/* Documents of 1 to 9 tokens, including their ends; none is longer than a sequence. */
static dt_dataset *open_documents(data_folder *folder, int64_t tokens, int64_t vocab)
{
    uint16_t ids[COUNT];
    int64_t left = 1;

    assert_true(tokens >= 9);
    for (int i = 0; i < COUNT; i++, left--) {
        ids[i] = (uint16_t)(4 + (i * 7 + i / 5) % (vocab - 4));
        if (left == 0 || i == COUNT - 1) {
            ids[i] = END;
            left = (i * 5) % 9 + 1;
        }
    }
    data_write_uint16(folder, "ids.bin", ids, COUNT);
    data_train(folder, "ids.bin");
    folder->recipe.data.tokens = DT_TOKENS_NANOGPT;
    folder->recipe.data.split = 0;
    folder->recipe.data.cross_documents = false;
    folder->recipe.data.end_of_text = END;
    folder->recipe.data.pack = true;
    folder->recipe.batch.tokens = tokens;
    folder->recipe.model.vocab = vocab;
    return data_open(folder);
}

static double pass_packed(harness *h, dt_dataset *dataset, int64_t tokens, int64_t *targets)
{
    int32_t *marks = calloc((size_t)(2 * tokens), sizeof(*marks));
    dt_sampler sampler;
    double sum = 0;

    *targets = 0;
    assert_int_equal(dt_sampler_init(&sampler, dataset, tokens, 1, NULL), DT_OK);
    for (int64_t i = 0; i < dt_sampler_epoch_samples(&sampler); i++) {
        void *inputs[] = {h->tokens, h->targets, marks, marks + tokens};
        dt_batch batch = h->batch;

        assert_int_equal(dt_sampler_fill(&sampler, inputs, i, 1, NULL), DT_OK);
        *targets += dt_sampler_valid_targets(&sampler, i, 1);
        batch.inputs[DT_DECODER_STARTS] = dt_tensor_2d(marks, DT_I32, 1, tokens);
        batch.inputs[DT_DECODER_POSITIONS] = dt_tensor_2d(marks + tokens, DT_I32, 1, tokens);
        sum += harness_pass(h, &batch, 1);
    }
    dt_sampler_release(&sampler);
    free(marks);
    return sum;
}

/* Runs each document as a separate batch. */
static double pass_alone(harness *h, const dt_dataset *dataset, int64_t *targets)
{
    double sum = 0;

    *targets = 0;
    for (int64_t first = 0, end; first < COUNT; first = end) {
        dt_batch one = h->batch;

        for (end = first; end == first || h->tokens[end - first - 1] != END; end++) {
            dt_token_stream_read(h->tokens + end - first, &dataset->train, end, 1);
            if (end > first)
                h->targets[end - first - 1] = h->tokens[end - first];
        }
        h->targets[end - first - 1] = -1;
        *targets += end - first - 1;
        one.inputs[DT_DECODER_TOKENS] = dt_tensor_2d(h->tokens, DT_I32, 1, end - first);
        one.inputs[DT_DECODER_TARGETS] = dt_tensor_2d(h->targets, DT_I32, 1, end - first);
        if (end - first > 1)
            sum += harness_pass(h, &one, 1);
    }
    return sum;
}

static void test_an_epoch_has_the_losses_of_its_documents(void **state)
{
    dt_model_config config = config_of(1);
    int64_t tokens = config.tokens, elems, of_packed, of_each;
    dt_dataset *dataset;
    float *packed, *each;
    double together, alone;
    harness h;

    harness_open(&h, &config);
    harness_init(&h, 5);
    dataset = open_documents(*state, tokens, harness_vocab(&h));
    assert_true(dataset->packs.count < COUNT / 4);
    harness_zero_grads(&h);
    together = pass_packed(&h, dataset, tokens, &of_packed);
    packed = harness_copy_grads(&h, &elems);
    harness_zero_grads(&h);
    alone = pass_alone(&h, dataset, &of_each);
    each = harness_copy_grads(&h, &elems);
    assert_int_equal(of_packed, of_each);
    assert_true(fabs(together - alone) <= 1e-6 * fabs(alone));
    assert_true(relative_norm(packed, each, elems) < 1e-5);
    free(packed);
    free(each);
    dt_dataset_close(dataset);
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_epoch_has_the_losses_of_its_documents,
                                        data_folder_make, data_folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
