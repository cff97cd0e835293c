/* Conversations: their files, the rows that they are placed in, and what counts of them (engine/data/chats.h). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data_support.h"
#include "engine/data/data_int.h"

#define T 6

/* Conversations as text: a character is a token of its id; upper case is trained with weight 1. */
static void add(dt_chats_draft *draft, const char *text, float weight)
{
    int32_t ids[64];
    float weights[64];
    size_t length = strlen(text);

    assert_true(length <= 64);
    for (size_t i = 0; i < length; i++) {
        ids[i] = text[i];
        weights[i] = text[i] >= 'A' && text[i] <= 'Z' ? weight : 0;
    }
    dt_chats_draft_add(draft, ids, weights, (int64_t)length);
}

static void make(dt_strbuf *file, const char *const *texts, float weight, bool wide)
{
    dt_chats_draft draft = {0};

    dt_strbuf_init(file);
    for (; *texts != NULL; texts++)
        add(&draft, *texts, weight);
    dt_chats_draft_write(file, &draft, wide);
    dt_chats_draft_release(&draft);
}

static const char *const three[] = {"abC", "aBCd", "xY", NULL};

static void test_a_file_is_read_as_it_was_written(void **state)
{
    const float weights[] = {1, 0.25F};

    (void)state;
    for (int k = 0; k < 4; k++) {
        int32_t ids[4];
        float read[4];
        dt_strbuf file;
        dt_chats chats;

        make(&file, three, weights[k % 2], k / 2 == 1);
        assert_int_equal(file.length, 64 + 8 * 4 + 9 * ((k / 2 == 1 ? 4 : 2) + (k % 2 ? 4 : 1)));
        assert_int_equal(dt_chats_take(&chats, "f", file.data, file.length, NULL), DT_OK);
        assert_int_equal(chats.count, 3);
        assert_int_equal(chats.tokens, 9);
        assert_int_equal(dt_chats_length(&chats, 1), 4);
        dt_chats_read(ids, read, &chats, 1, 4);
        assert_int_equal(ids[3], 'd');
        assert_true(read[0] == 0 && read[1] == weights[k % 2] && read[3] == 0);
        assert_int_equal(dt_chats_check(&chats, 'z', NULL), DT_OK);
        assert_int_equal(dt_chats_check(&chats, 'c', NULL), DT_ERR_RECIPE);
        dt_chats_close(&chats);
        dt_strbuf_release(&file);
    }
}

static void refuse_bytes(dt_strbuf *file, size_t at, unsigned char byte, const char *word)
{
    char before = file->data[at];
    dt_error err = DT_ERROR_INIT;
    dt_chats chats;

    file->data[at] = (char)byte;
    assert_int_equal(dt_chats_take(&chats, "chats.x", file->data, file->length, &err),
                     DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "chats.x"));
    assert_non_null(strstr(err.message, word));
    dt_chats_close(&chats);
    file->data[at] = before;
}

static void test_damaged_files_are_refused(void **state)
{
    dt_strbuf file;
    dt_chats chats;

    (void)state;
    make(&file, three, 0.5F, false);
    refuse_bytes(&file, 0, 'X', "header");
    refuse_bytes(&file, 7, 2, "version");
    refuse_bytes(&file, 8, 4, "does not match");
    refuse_bytes(&file, 14, 0x7f, "does not match");
    refuse_bytes(&file, 22, 0x7f, "does not match");
    refuse_bytes(&file, 24, 3, "does not match");
    refuse_bytes(&file, 64, 1, "do not cover");
    refuse_bytes(&file, 64 + 8, 0, "overlap");
    refuse_bytes(&file, 64 + 16, 99, "overlap");
    refuse_bytes(&file, 64 + 32 + 18 + 3, 0xbf, "a weight"); /* -0.5 */
    refuse_bytes(&file, 64 + 32 + 18 + 4 * 2 + 3, 0xbf, "a weight");
    for (size_t length = 0; length < file.length; length++) {
        assert_int_equal(dt_chats_take(&chats, "f", file.data, length, NULL), DT_ERR_RECIPE);
        dt_chats_close(&chats);
    }
    dt_strbuf_release(&file);
}

/* Every row of `rows` as text, one a line: the tokens, with '.' for padding; then the targets, '-' for none. */
static void draw(dt_strbuf *out, const dt_chat_rows *rows)
{
    int32_t ids[T], targets[T], starts[T], positions[T];
    float weights[T];
    void *inputs[] = {ids, targets, starts, positions, weights};

    dt_strbuf_init(out);
    for (int64_t r = 0; r < rows->count; r++) {
        double sum = 0;

        dt_chat_row_fill(inputs, 0, rows, r);
        for (int t = 0; t < T; t++)
            dt_strbuf_add_char(out, (char)(ids[t] != 0 ? ids[t] : '.'));
        dt_strbuf_add_char(out, ' ');
        for (int t = 0; t < T; t++) {
            dt_strbuf_add_char(out, (char)(targets[t] >= 0 ? targets[t] : '-'));
            assert_int_equal(positions[t], t - starts[t]);
            assert_true((weights[t] > 0) == (targets[t] >= 0));
            sum += (double)weights[t];
        }
        assert_true(fabs(sum - rows->weights[r]) < 1e-6);
        dt_strbuf_add_char(out, '\n');
    }
}

static void expect(const char *const *texts, dt_chat_limits limits, float weight, const char *want,
                   dt_chat_facts facts)
{
    dt_chat_facts are;
    dt_strbuf file, drawn;
    dt_chat_rows rows;
    dt_chats chats;

    make(&file, texts, weight, false);
    assert_int_equal(dt_chats_take(&chats, "f", file.data, file.length, NULL), DT_OK);
    assert_int_equal(dt_chat_rows_make(&rows, &chats, 0, chats.count, &limits, "data.train", NULL),
                     DT_OK);
    draw(&drawn, &rows);
    assert_string_equal(drawn.data, want);
    are = dt_chat_facts_of(&rows);
    assert_int_equal(are.untrained, facts.untrained);
    assert_int_equal(are.cut, facts.cut);
    assert_int_equal(are.too_long, facts.too_long);
    assert_int_equal(are.targets, facts.targets);
    dt_strbuf_release(&drawn);
    dt_chat_rows_release(&rows);
    dt_chats_close(&chats);
    dt_strbuf_release(&file);
}

/* "a": nothing is trained; "Ab": only the first token, which is never predicted. */
static const char *const many[] = {"abC",      "aBC",      "a",  "Ab", "xYzZ",
                                   "abcdefgH", "pqRstuvW", "Ok", NULL};

static void test_rows_of_each_kind(void **state)
{
    (void)state;
    expect(many, (dt_chat_limits){.tokens = T, .too_long = DT_TOO_LONG_DROP}, 1,
           "abC... -C----\naBC... BC----\nxYzZ.. Y-Z---\n",
           (dt_chat_facts){.untrained = 3, .too_long = 2, .targets = 5});
    expect(many, (dt_chat_limits){.tokens = T, .too_long = DT_TOO_LONG_DROP, .pack = true}, 1,
           "abCaBC -C-BC-\nxYzZ.. Y-Z---\n",
           (dt_chat_facts){.untrained = 3, .too_long = 2, .targets = 5});
    expect(many, (dt_chat_limits){.tokens = T, .too_long = DT_TOO_LONG_CUT, .pack = true}, 0.5F,
           "abCaBC -C-BC-\nxYzZ.. Y-Z---\npqRstu -R----\n",
           (dt_chat_facts){.untrained = 4, .cut = 2, .targets = 6});
    expect(three, (dt_chat_limits){.tokens = T, .pack = true, .mean = DT_MEAN_OF_CONVERSATIONS},
           0.25F, "abC... -C----\naBCdxY BC--Y-\n", (dt_chat_facts){.targets = 4});
}

/* Every conversation is in one row, whole, and few places are padding. */
static void test_packed_rows_have_each_conversation_once(void **state)
{
    dt_chat_limits limits = {.tokens = 100, .pack = true};
    dt_chats_draft draft = {0};
    int seen[3000] = {0};
    dt_chat_rows rows;
    dt_strbuf file;
    dt_chats chats;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        int32_t ids[100] = {0};
        float weights[100] = {0, 1};

        dt_chats_draft_add(&draft, ids, weights, 2 + (i * 7919) % 60);
    }
    dt_strbuf_init(&file);
    dt_chats_draft_write(&file, &draft, false);
    assert_int_equal(dt_chats_take(&chats, "f", file.data, file.length, NULL), DT_OK);
    assert_int_equal(dt_chat_rows_make(&rows, &chats, 0, 3000, &limits, "data.train", NULL), DT_OK);
    for (int64_t r = 0; r < rows.count; r++) {
        int64_t used = 0;

        assert_true(rows.starts[r] < rows.starts[r + 1]);
        for (int64_t i = rows.starts[r]; i < rows.starts[r + 1]; i++) {
            used += dt_chats_length(&chats, rows.kept[i]);
            seen[rows.kept[i]]++;
        }
        assert_true(used <= 100);
        assert_true(rows.weights[r] == (double)(rows.starts[r + 1] - rows.starts[r]));
    }
    for (int i = 0; i < 3000; i++)
        assert_int_equal(seen[i], 1);
    assert_true(rows.tokens == chats.tokens && rows.count * 100 < chats.tokens * 1.03);
    dt_chat_rows_release(&rows);
    dt_chats_close(&chats);
    dt_chats_draft_release(&draft);
    dt_strbuf_release(&file);
}

static void refuse_rows(const char *const *texts, dt_chat_limits limits, const char *word)
{
    dt_error err = DT_ERROR_INIT;
    dt_chat_rows rows;
    dt_strbuf file;
    dt_chats chats;

    make(&file, texts, 1, false);
    assert_int_equal(dt_chats_take(&chats, "f", file.data, file.length, NULL), DT_OK);
    assert_int_equal(dt_chat_rows_make(&rows, &chats, 0, chats.count, &limits, "data.train", &err),
                     DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, word));
    dt_chat_rows_release(&rows);
    dt_chats_close(&chats);
    dt_strbuf_release(&file);
}

static void test_what_cannot_be_placed_is_refused(void **state)
{
    static const char *const nothing[] = {"abc", "Ab", NULL};

    (void)state;
    refuse_rows(many, (dt_chat_limits){.tokens = T}, "the first is conversation 6, with 8 tokens");
    refuse_rows(nothing, (dt_chat_limits){.tokens = T}, "nothing is trained");
    refuse_rows(many, (dt_chat_limits){.tokens = 1, .too_long = DT_TOO_LONG_CUT},
                "nothing is trained");
}

/* A dataset of many conversations. */
static dt_dataset *open_many(data_folder *folder, dt_loss_mean mean)
{
    dt_chats_draft draft = {0};
    dt_dataset *dataset = NULL;
    dt_error err = DT_ERROR_INIT;
    dt_strbuf file;

    for (int i = 0; i < 41; i++)
        add(&draft, i % 3 == 0 ? "aBCdE" : i % 3 == 1 ? "xY" : "qrS", (float)(1 + i % 4) / 4);
    dt_strbuf_init(&file);
    dt_chats_draft_write(&file, &draft, false);
    data_write(folder, "all.chats", file.data, file.length);
    data_train(folder, "all.chats");
    folder->recipe.data.format = DT_DATA_CHAT;
    folder->recipe.data.tokens = DT_TOKENS_CHATS;
    folder->recipe.data.tokenizer = "tests/golden/chat/model/tokenizer.json";
    folder->recipe.data.loss = mean;
    folder->recipe.data.pack = true;
    folder->recipe.data.split = 0.25;
    folder->recipe.batch.tokens = T;
    assert_int_equal(dt_dataset_open(&dataset, &folder->recipe, NULL, &err), DT_OK);
    dt_chats_draft_release(&draft);
    dt_strbuf_release(&file);
    return dataset;
}

/* Both answers of a pair are in a row, the rejected one with negative weights, or none is. */
static void test_a_pair_of_answers_is_a_row(void **state)
{
    static const char *const texts[] = {"aB",   "aCD", /* a row */
                                        "abcD", "aEF", /* too long together */
                                        "aB",   "ab",  /* nothing of the second is trained */
                                        "aXY",  "aZ",  NULL};
    const dt_chat_limits limits = {.tokens = T, .too_long = DT_TOO_LONG_DROP, .pairs = true};
    int32_t ids[T], targets[T], starts[T], positions[T];
    float weights[T], reference[1];
    void *const inputs[6] = {ids, targets, starts, positions, weights, reference};
    dt_chat_rows rows;
    dt_strbuf file;
    dt_chats chats;

    (void)state;
    make(&file, texts, 1, false);
    assert_int_equal(dt_chats_take(&chats, "f", file.data, file.length, NULL), DT_OK);
    assert_int_equal(dt_chat_rows_make(&rows, &chats, 0, chats.count, &limits, "data.train", NULL),
                     DT_OK);
    assert_int_equal(rows.count, 2);
    assert_int_equal(rows.too_long, 1);
    assert_int_equal(rows.untrained, 1);
    assert_int_equal(rows.targets, 1 + 2 + 2 + 1);
    assert_true(rows.weights[0] == 1 && rows.weights[1] == 1);
    rows.reference = calloc(2, sizeof(*rows.reference));
    assert_non_null(rows.reference);
    rows.reference[1] = 0.5F;
    dt_chat_row_fill(inputs, 0, &rows, 0);
    assert_true(weights[0] == 1 && weights[1] == 0 && weights[2] == -1 && weights[3] == -1 &&
                weights[4] == 0 && weights[5] == 0);
    assert_true(targets[0] == 'B' && targets[1] == -1 && targets[2] == 'C' && targets[3] == 'D');
    assert_true(starts[1] == 0 && starts[2] == 2 && starts[4] == 2 && starts[5] == 5);
    assert_true(positions[2] == 0 && positions[4] == 2 && reference[0] == 0);
    dt_chat_row_fill(inputs, 0, &rows, 1);
    assert_true(weights[0] == 1 && weights[1] == 1 && weights[3] == -1 && reference[0] == 0.5F);
    dt_chat_row_fill(inputs, 0, &rows, -1);
    for (int i = 0; i < T; i++)
        assert_true(weights[i] == 0 && targets[i] == -1);
    dt_chat_rows_release(&rows);
    dt_chats_close(&chats);
    dt_strbuf_release(&file);
}

static void test_the_divisor_is_the_sum_of_the_weights(void **state)
{
    for (int mean = 0; mean < 2; mean++) {
        data_folder *folder = *state;
        dt_dataset *dataset;
        dt_sampler sampler;
        double sum = 0;
        int64_t rows;

        folder->recipe.data.train.count = 0;
        dataset = open_many(folder, (dt_loss_mean)mean);
        assert_int_equal(dt_sampler_init(&sampler, dataset, T, 3, NULL), DT_OK);
        rows = dt_sampler_epoch_samples(&sampler);
        assert_int_equal(rows, dataset->chat_rows.count);
        for (int64_t i = 0; i < rows; i++) {
            int32_t ids[T], targets[T], starts[T], positions[T];
            float weights[T];
            void *inputs[] = {ids, targets, starts, positions, weights};
            double row = 0;

            assert_int_equal(dt_sampler_fill(&sampler, inputs, i, 1, NULL), DT_OK);
            for (int t = 0; t < T; t++)
                row += (double)weights[t];
            assert_true(fabs(row - dt_sampler_valid_targets(&sampler, i, 1)) < 1e-6);
            sum += row;
        }
        assert_true(fabs(sum - dt_sampler_valid_targets(&sampler, 0, rows)) < 1e-5);
        if (mean == DT_MEAN_OF_CONVERSATIONS) /* 30 conversations before the split, 30.75 */
            assert_true(dt_sampler_valid_targets(&sampler, 0, rows) == 30);
        assert_int_equal(dt_validation_count(dataset, T), dataset->valid_chat_rows.count);
        assert_true(dataset->valid_chat_rows.count > 0);
        dt_sampler_release(&sampler);
        dt_dataset_close(dataset);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_is_read_as_it_was_written),
        cmocka_unit_test(test_damaged_files_are_refused),
        cmocka_unit_test(test_rows_of_each_kind),
        cmocka_unit_test(test_packed_rows_have_each_conversation_once),
        cmocka_unit_test(test_what_cannot_be_placed_is_refused),
        cmocka_unit_test(test_a_pair_of_answers_is_a_row),
        cmocka_unit_test_setup_teardown(test_the_divisor_is_the_sum_of_the_weights,
                                        data_folder_make, data_folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
