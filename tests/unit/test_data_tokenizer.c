/* Tokenizers of characters, bytes and ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "engine/data/data_int.h"

static dt_tokenizer *parse(const char *text, dt_status wanted)
{
    dt_tokenizer *tokenizer = NULL;
    json_t *json = json_loads(text, 0, NULL);

    assert_non_null(json);
    assert_int_equal(dt_tokenizer_from_json(&tokenizer, json, NULL), wanted);
    assert_true((tokenizer != NULL) == (wanted == DT_OK));
    json_decref(json);
    return tokenizer;
}

static void round_trip(const dt_tokenizer *tokenizer, const char *text, int64_t wanted_count)
{
    int32_t *tokens;
    int64_t count;
    dt_strbuf back;

    dt_strbuf_init(&back);
    assert_int_equal(dt_tokenizer_encode(&tokens, &count, tokenizer, text, strlen(text), NULL),
                     DT_OK);
    assert_int_equal(count, wanted_count);
    for (int64_t i = 0; i < count; i++)
        dt_tokenizer_decode(&back, tokenizer, tokens[i]);
    assert_string_equal(back.data, text);
    dt_strbuf_release(&back);
    free(tokens);
}

static void test_tokenizer_char_comes_back_from_json(void **state)
{
    dt_tokenizer *tokenizer =
        parse("{\"kind\": \"char\", \"vocab\": 6, \"characters\": \"\\nab\xc3\xa9\xe2\x82\xac"
              "\xf0\x9f\x98\x80\"}",
              DT_OK);
    json_t *json = dt_tokenizer_to_json(tokenizer);
    dt_tokenizer *again;

    (void)state;
    assert_int_equal(dt_tokenizer_from_json(&again, json, NULL), DT_OK);
    assert_int_equal(dt_tokenizer_vocab(again), 6);
    round_trip(again, "ba\xc3\xa9\n\xe2\x82\xac\xf0\x9f\x98\x80", 6);
    round_trip(again, "", 0);
    json_decref(json);
    dt_tokenizer_free(again);
    dt_tokenizer_free(tokenizer);
}

static void test_tokenizer_char_names_what_it_does_not_know(void **state)
{
    dt_tokenizer *tokenizer =
        parse("{\"kind\": \"char\", \"vocab\": 2, \"characters\": \"ab\"}", DT_OK);
    dt_error err = DT_ERROR_INIT;
    int32_t *tokens;
    int64_t count;

    (void)state;
    assert_int_equal(dt_tokenizer_encode(&tokens, &count, tokenizer, "a\xc3\xa9", 3, &err),
                     DT_ERR_USAGE);
    assert_null(tokens);
    assert_non_null(strstr(err.message, "'\xc3\xa9' (U+00E9)"));
    dt_error_clear(&err);
    assert_int_equal(dt_tokenizer_encode(&tokens, &count, tokenizer, "ab\xff", 3, &err),
                     DT_ERR_USAGE);
    assert_non_null(strstr(err.message, "byte 2"));
    dt_tokenizer_free(tokenizer);
}

static void test_tokenizer_byte_takes_every_byte(void **state)
{
    dt_tokenizer *tokenizer = parse("{\"kind\": \"byte\", \"vocab\": 256}", DT_OK);
    char all[256];
    int32_t *tokens;
    int64_t count;

    (void)state;
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    assert_int_equal(dt_tokenizer_encode(&tokens, &count, tokenizer, all, sizeof(all), NULL),
                     DT_OK);
    assert_int_equal(count, 256);
    for (int i = 0; i < 256; i++)
        assert_int_equal(tokens[i], i);
    free(tokens);
    round_trip(tokenizer, "h\xc3\xa9", 3);
    dt_tokenizer_free(tokenizer);
}

static void test_tokenizer_ids_are_numbers_with_spaces(void **state)
{
    dt_tokenizer *tokenizer = parse("{\"kind\": \"ids\", \"vocab\": 100}", DT_OK);
    static const char *const wrong[] = {"1 x", "100", "-1", "5,6", "99999999999999999999"};
    int32_t *tokens;
    int64_t count;

    (void)state;
    round_trip(tokenizer, "12 0 99 ", 3);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(
            dt_tokenizer_encode(&tokens, &count, tokenizer, wrong[i], strlen(wrong[i]), NULL),
            DT_ERR_USAGE);
    dt_tokenizer_free(tokenizer);
}

static void test_tokenizer_writes_a_mark_for_a_token_beyond_its_vocabulary(void **state)
{
    dt_tokenizer *tokenizer =
        parse("{\"kind\": \"char\", \"vocab\": 2, \"characters\": \"ab\"}", DT_OK);
    dt_strbuf text;

    (void)state;
    dt_strbuf_init(&text);
    dt_tokenizer_decode(&text, tokenizer, 1);
    dt_tokenizer_decode(&text, tokenizer, 2);
    assert_string_equal(text.data, "b\xef\xbf\xbd");
    dt_strbuf_release(&text);
    dt_tokenizer_free(tokenizer);
}

static void test_tokenizer_refuses_damaged_json(void **state)
{
    static const char *const damaged[] = {
        "[]",
        "{}",
        "{\"kind\": \"char\", \"vocab\": 2}",
        "{\"kind\": \"char\", \"vocab\": 0, \"characters\": \"\"}",
        "{\"kind\": \"char\", \"vocab\": 2, \"characters\": \"ba\"}",
        "{\"kind\": \"char\", \"vocab\": 2, \"characters\": \"aa\"}",
        "{\"kind\": \"char\", \"vocab\": 3, \"characters\": \"ab\"}",
        "{\"kind\": \"byte\", \"vocab\": 255}",
        "{\"kind\": \"ids\", \"vocab\": 0}",
        "{\"kind\": \"ids\", \"vocab\": 2147483648}",
        "{\"kind\": \"ids\", \"vocab\": \"many\"}",
        "{\"kind\": \"bpe\", \"vocab\": 256}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++)
        parse(damaged[i], DT_ERR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokenizer_char_comes_back_from_json),
        cmocka_unit_test(test_tokenizer_char_names_what_it_does_not_know),
        cmocka_unit_test(test_tokenizer_byte_takes_every_byte),
        cmocka_unit_test(test_tokenizer_ids_are_numbers_with_spaces),
        cmocka_unit_test(test_tokenizer_writes_a_mark_for_a_token_beyond_its_vocabulary),
        cmocka_unit_test(test_tokenizer_refuses_damaged_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
