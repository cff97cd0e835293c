/* fairseq's dictionaries and subword-nmt's codes: words, pieces and ids as in those programs;
 * errors with lines. The fixtures come from tests/golden/make_words_fixture.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "engine/tokens/fairseq.h"

#define FOLDER "tests/golden/words/"

static void read_text(dt_strbuf *out, const char *path)
{
    dt_error err = DT_ERROR_INIT;

    dt_strbuf_init(out);
    if (dt_file_read(out, path, (size_t)1 << 20, &err) != DT_OK)
        fail_msg("%s", err.message);
}

static void load_dictionary(dt_dictionary *out)
{
    dt_error err = DT_ERROR_INIT;
    dt_strbuf text;

    read_text(&text, FOLDER "dict.txt");
    if (dt_dictionary_parse(out, text.data, text.length, "dict.txt", &err) != DT_OK)
        fail_msg("%s", err.message);
    dt_strbuf_release(&text);
}

static json_t *load_cases(void)
{
    dt_error err = DT_ERROR_INIT;
    json_t *out = NULL;

    if (dt_json_read(&out, FOLDER "cases.json", (size_t)1 << 20, &err) != DT_OK)
        fail_msg("%s", err.message);
    return out;
}

static void compare_ids(const dt_dictionary *dictionary, const char *text, size_t length,
                        const json_t *wanted)
{
    dt_ids ids = {0};

    assert_int_equal(dt_dictionary_encode(&ids, dictionary, text, length, NULL), DT_OK);
    if (ids.count != json_array_size(wanted))
        fail_msg("'%s' has %zu words, expected %zu", text, ids.count, json_array_size(wanted));
    for (size_t i = 0; i < ids.count; i++)
        if (ids.items[i] != json_integer_value(json_array_get(wanted, i)))
            fail_msg("'%s': word %zu is %d", text, i, ids.items[i]);
    dt_ids_release(&ids);
}

static void test_words_have_the_ids_of_fairseq(void **state)
{
    json_t *cases = load_cases(), *one;
    dt_dictionary dictionary;
    size_t i;

    load_dictionary(&dictionary);
    json_array_foreach(json_object_get(cases, "words"), i, one)
        compare_ids(&dictionary, json_string_value(json_array_get(one, 0)),
                    json_string_length(json_array_get(one, 0)), json_array_get(one, 1));
    assert_true(i > 40);
    dt_dictionary_release(&dictionary);
    json_decref(cases);
}

static void compare_pieces(const char *version, const char *path)
{
    json_t *cases = load_cases(), *one;
    dt_error err = DT_ERROR_INIT;
    dt_dictionary dictionary;
    dt_strbuf text, pieces;
    dt_codes codes;
    size_t i;

    load_dictionary(&dictionary);
    read_text(&text, path);
    dt_strbuf_init(&pieces);
    if (dt_codes_parse(&codes, text.data, text.length, path, &err) != DT_OK)
        fail_msg("%s", err.message);
    json_array_foreach(json_object_get(cases, version), i, one) {
        const json_t *line = json_array_get(one, 0);

        dt_strbuf_reset(&pieces);
        assert_int_equal(dt_codes_apply(&pieces, &codes, json_string_value(line),
                                        json_string_length(line), NULL),
                         DT_OK);
        assert_string_equal(pieces.data, json_string_value(json_array_get(one, 1)));
        compare_ids(&dictionary, pieces.data, pieces.length, json_array_get(one, 2));
    }
    assert_true(i > 40);
    dt_codes_release(&codes);
    dt_dictionary_release(&dictionary);
    dt_strbuf_release(&text);
    dt_strbuf_release(&pieces);
    json_decref(cases);
}

static void test_pieces_are_those_of_subword_nmt(void **state)
{
    compare_pieces("0.2", FOLDER "codes-0.2");
    compare_pieces("0.1", FOLDER "codes-0.1");
}

static void test_codes_of_fastbpe_are_read(void **state)
{
    static const char text[] = "a b 12\nab c</w> 3\n";
    dt_error err = DT_ERROR_INIT;
    dt_codes codes;
    dt_strbuf out;

    dt_strbuf_init(&out);
    if (dt_codes_parse(&codes, text, sizeof(text) - 1, "codes", &err) != DT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(dt_codes_apply(&out, &codes, "abc abcd", 8, NULL), DT_OK);
    assert_string_equal(out.data, "abc ab@@ c@@ d");
    dt_codes_release(&codes);
    dt_strbuf_release(&out);
}

static void test_pieces_become_words_again(void **state)
{
    static const char text[] = "the@@ 3\nory 2\nof 1\n";
    dt_dictionary dictionary;
    dt_strbuf out;

    dt_strbuf_init(&out);
    assert_int_equal(dt_dictionary_parse(&dictionary, text, sizeof(text) - 1, "dict.txt", NULL),
                     DT_OK);
    assert_int_equal(dt_dictionary_size(&dictionary), 7);
    for (int32_t id = 4; id < 7; id++)
        dt_dictionary_decode(&out, &dictionary, id);
    dt_dictionary_decode(&out, &dictionary, DT_DICTIONARY_END);
    dt_dictionary_decode(&out, &dictionary, DT_DICTIONARY_UNKNOWN);
    assert_string_equal(out.data, "theory of <unk> ");
    dt_dictionary_release(&dictionary);
    dt_strbuf_release(&out);
}

typedef struct wrong_file {
    const char *text, *words[2]; /* parts of the message */
} wrong_file;

static void test_wrong_dictionaries_are_refused_by_line(void **state)
{
    static const wrong_file wrong[] = {
        {"", {"'d.txt' is empty"}},
        {"a 1\nb\n", {"line 2", "a word, a space and its count"}},
        {"a 1\nb x\n", {"line 2"}},
        {"a 1\n\nb 2\n", {"line 2"}},
        {"a -\n", {"line 1"}},
        {"a 1\nb 1\na 2\n", {"line 3", "'a' is on a line above already"}},
        {"a 1\n<pad> 2\n", {"line 2", "'<pad>' is in every dictionary already"}},
        {"a\xff 1\n", {"byte 1 is not UTF-8 (0xff)"}},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        dt_error err = DT_ERROR_INIT;
        dt_dictionary dictionary;

        assert_int_equal(
            dt_dictionary_parse(&dictionary, wrong[i].text, strlen(wrong[i].text), "d.txt", &err),
            DT_ERR_CORRUPT);
        assert_non_null(strstr(err.message, "'d.txt'"));
        for (int w = 0; w < 2; w++)
            if (wrong[i].words[w] != NULL && strstr(err.message, wrong[i].words[w]) == NULL)
                fail_msg("'%s' is not in: %s", wrong[i].words[w], err.message);
        dt_dictionary_release(&dictionary);
    }
}

static void test_wrong_codes_are_refused_by_line(void **state)
{
    static const wrong_file wrong[] = {
        {"", {"'c' is empty"}},
        {"#version: 0.2\n", {"'c' is empty"}},
        {"#version: 0.3\na b\n", {"line 1", "version '0.3'"}},
        {"#version: 0.2\na b\nab\n", {"line 3", "two symbols"}},
        {"a b c\n", {"line 1"}},
        {"a b\n c\n", {"line 2"}},
        {"a \xe4\n", {"byte 2 is not UTF-8 (0xe4)"}},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        dt_error err = DT_ERROR_INIT;
        dt_codes codes;

        assert_int_equal(dt_codes_parse(&codes, wrong[i].text, strlen(wrong[i].text), "c", &err),
                         DT_ERR_CORRUPT);
        assert_non_null(strstr(err.message, "'c'"));
        for (int w = 0; w < 2; w++)
            if (wrong[i].words[w] != NULL && strstr(err.message, wrong[i].words[w]) == NULL)
                fail_msg("'%s' is not in: %s", wrong[i].words[w], err.message);
        dt_codes_release(&codes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_have_the_ids_of_fairseq),
        cmocka_unit_test(test_pieces_are_those_of_subword_nmt),
        cmocka_unit_test(test_codes_of_fastbpe_are_read),
        cmocka_unit_test(test_pieces_become_words_again),
        cmocka_unit_test(test_wrong_dictionaries_are_refused_by_line),
        cmocka_unit_test(test_wrong_codes_are_refused_by_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
