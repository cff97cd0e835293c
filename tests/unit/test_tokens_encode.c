/* Small tokenizers of each family: the ids of the common libraries, and text back. The fixtures
 * come from tests/golden/make_tokens_fixture.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "engine/tokens/bpe.h"

#define FOLDER "tests/golden/tokens/"

static dt_bpe *load(const char *name)
{
    dt_error err = DT_ERROR_INIT;
    dt_strbuf path, text;
    dt_bpe *bpe = NULL;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&path, FOLDER "%s", name);
    assert_int_equal(dt_file_read(&text, path.data, DT_BPE_MAX_BYTES, &err), DT_OK);
    if (dt_bpe_parse(&bpe, text.data, text.length, name, &err) != DT_OK)
        fail_msg("%s", err.message);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return bpe;
}

/* Decodes the ids; without normalization this gives the original text. */
static void compare_back(const dt_bpe *bpe, const dt_ids *ids, const char *text, size_t length)
{
    dt_strbuf back;

    dt_strbuf_init(&back);
    for (size_t i = 0; i < ids->count; i++)
        dt_bpe_decode(&back, bpe, ids->items[i]);
    if (back.length != length || memcmp(back.data, text, length) != 0)
        fail_msg("'%s' came back as '%s'", text, back.data);
    dt_strbuf_release(&back);
}

static void compare(const char *name, dt_bpe_encoder *encoder, const dt_bpe *bpe, const json_t *one,
                    bool comes_back)
{
    const char *text = json_string_value(json_array_get(one, 0));
    size_t length = json_string_length(json_array_get(one, 0));
    const json_t *wanted = json_array_get(one, 1);
    dt_error err = DT_ERROR_INIT;
    dt_ids ids = {0};

    if (dt_bpe_encode(&ids, encoder, text, length, &err) != DT_OK)
        fail_msg("%s: '%s': %s", name, text, err.message);
    for (size_t i = 0; i < json_array_size(wanted) || i < ids.count; i++)
        if (ids.count != json_array_size(wanted) ||
            ids.items[i] != json_integer_value(json_array_get(wanted, i)))
            fail_msg("%s: '%s': token %zu of %zu (the library has %zu) is %d, not %lld", name, text,
                     i, ids.count, json_array_size(wanted), i < ids.count ? ids.items[i] : -1,
                     (long long)json_integer_value(json_array_get(wanted, i)));
    if (comes_back)
        compare_back(bpe, &ids, text, length);
    dt_ids_release(&ids);
}

/* Twice, so that cached words are compared too. */
static void test_ids_are_those_of_the_libraries(void **state)
{
    json_t *all, *cases, *one;
    const char *name;
    size_t i;

    (void)state;
    assert_int_equal(dt_json_read(&all, FOLDER "cases.json", DT_BPE_MAX_BYTES, NULL), DT_OK);
    json_object_foreach(all, name, cases) {
        bool comes_back = strstr(name, "gpt2") != NULL || strstr(name, "llama3") != NULL ||
                          strstr(name, "cl100k") != NULL || strstr(name, "smollm2") != NULL ||
                          strstr(name, "o200k") != NULL || strstr(name, "deepseek") != NULL ||
                          strstr(name, "tekken") != NULL;
        dt_bpe *bpe = load(name);
        dt_bpe_encoder *encoder;

        assert_int_equal(dt_bpe_encoder_open(&encoder, bpe, NULL), DT_OK);
        for (int again = 0; again < 2; again++)
            json_array_foreach(cases, i, one)
                compare(name, encoder, bpe, one, comes_back);
        dt_bpe_encoder_close(encoder);
        dt_bpe_free(bpe);
    }
    json_decref(all);
}

/* Each token of WordPiece but those that continue a word follows a space; English punctuation and contractions lose it. */
static void test_pieces_of_words_become_text(void **state)
{
    static const char words[] = "don't train , ( the checkpoints ) ... isn't it ?";
    dt_bpe *bpe = load("bert.json");
    dt_bpe_encoder *encoder;
    dt_ids ids = {0};
    dt_strbuf back;

    (void)state;
    dt_strbuf_init(&back);
    assert_int_equal(dt_bpe_encoder_open(&encoder, bpe, NULL), DT_OK);
    assert_int_equal(dt_bpe_encode(&ids, encoder, words, sizeof(words) - 1, NULL), DT_OK);
    for (size_t i = 0; i < ids.count; i++)
        dt_bpe_decode(&back, bpe, ids.items[i]);
    assert_true(dt_bpe_drops_first_space(bpe));
    assert_string_equal(back.data, " don ' t train, ( the checkpoints )... isn ' t it?");
    ids.count = 0;
    dt_strbuf_reset(&back);
    for (int i = 0; i < 101; i++) /* above max_input_chars_per_word */
        dt_strbuf_add_char(&back, 'a');
    assert_int_equal(dt_bpe_encode(&ids, encoder, back.data, 100, NULL), DT_OK);
    assert_int_not_equal(ids.items[0], dt_bpe_unknown(bpe));
    ids.count = 0;
    assert_int_equal(dt_bpe_encode(&ids, encoder, back.data, 101, NULL), DT_OK);
    assert_int_equal(ids.count, 1);
    assert_int_equal(ids.items[0], dt_bpe_unknown(bpe));
    dt_strbuf_release(&back);
    dt_ids_release(&ids);
    dt_bpe_encoder_close(encoder);
    dt_bpe_free(bpe);
}

static void test_a_long_word_is_merged_as_a_short_one(void **state)
{
    dt_bpe *bpe = load("gpt2.json");
    dt_bpe_encoder *encoder;
    dt_strbuf word;
    dt_ids ids = {0};

    (void)state;
    dt_strbuf_init(&word);
    for (int i = 0; i < 100000; i++)
        dt_strbuf_add_str(&word, i % 7 == 0 ? "training" : "ing");
    assert_int_equal(dt_bpe_encoder_open(&encoder, bpe, NULL), DT_OK);
    assert_int_equal(dt_bpe_encode(&ids, encoder, word.data, word.length, NULL), DT_OK);
    assert_true(ids.count < word.length / 2);
    compare_back(bpe, &ids, word.data, word.length);
    dt_strbuf_release(&word);
    dt_ids_release(&ids);
    dt_bpe_encoder_close(encoder);
    dt_bpe_free(bpe);
}

static void test_text_that_is_not_utf8_is_refused_with_its_place(void **state)
{
    dt_bpe *bpe = load("gpt2.json");
    dt_error err = DT_ERROR_INIT;
    dt_bpe_encoder *encoder;
    dt_ids ids = {0};

    (void)state;
    assert_int_equal(dt_bpe_encoder_open(&encoder, bpe, NULL), DT_OK);
    assert_int_equal(dt_bpe_encode(&ids, encoder, "plain text \xff", 12, &err), DT_ERR_USAGE);
    assert_non_null(strstr(err.message, "byte 11"));
    assert_int_equal(dt_bpe_encode(&ids, encoder, "cut \xe2\x82", 6, NULL), DT_ERR_USAGE);
    assert_int_equal(ids.count, 0);
    dt_bpe_encoder_close(encoder);
    dt_bpe_free(bpe);
}

static void test_a_token_beyond_the_vocabulary_is_a_mark(void **state)
{
    dt_bpe *bpe = load("gpt2.json");
    dt_strbuf text;

    (void)state;
    dt_strbuf_init(&text);
    dt_bpe_decode(&text, bpe, (int32_t)dt_bpe_vocab(bpe));
    dt_bpe_decode(&text, bpe, -1);
    dt_bpe_decode(&text, bpe, dt_bpe_end_of_text(bpe));
    assert_string_equal(text.data, "\xef\xbf\xbd\xef\xbf\xbd<|endoftext|>");
    dt_strbuf_release(&text);
    dt_bpe_free(bpe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_are_those_of_the_libraries),
        cmocka_unit_test(test_pieces_of_words_become_text),
        cmocka_unit_test(test_a_long_word_is_merged_as_a_short_one),
        cmocka_unit_test(test_text_that_is_not_utf8_is_refused_with_its_place),
        cmocka_unit_test(test_a_token_beyond_the_vocabulary_is_a_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
