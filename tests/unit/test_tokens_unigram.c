/* Unigram tokenizers apart from the fixtures: unknown characters, long texts, parts of a text;
 * and normal forms of long runs of marks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/file.h"
#include "engine/tokens/bpe.h"

#define MILLION 1000000

static dt_bpe *parse(const char *file)
{
    dt_error err = DT_ERROR_INIT;
    dt_bpe *bpe;

    if (dt_bpe_parse(&bpe, file, strlen(file), "own.json", &err) != DT_OK)
        fail_msg("%s", err.message);
    return bpe;
}

static dt_status encode(dt_ids *out, const dt_bpe *bpe, const char *text, size_t length,
                        dt_error *err)
{
    dt_bpe_encoder *encoder;
    dt_status st;

    out->count = 0;
    assert_int_equal(dt_bpe_encoder_open(&encoder, bpe, NULL), DT_OK);
    st = dt_bpe_encode(out, encoder, text, length, err);
    dt_bpe_encoder_close(encoder);
    return st;
}

static void expect_ids(const char *file, const char *text, const int32_t *wanted, size_t count)
{
    dt_bpe *bpe = parse(file);
    dt_ids ids = {0};

    assert_int_equal(encode(&ids, bpe, text, strlen(text), NULL), DT_OK);
    assert_int_equal(ids.count, count);
    assert_memory_equal(ids.items, wanted, count * sizeof(*wanted));
    dt_ids_release(&ids);
    dt_bpe_free(bpe);
}

#define PIECES                                                                                   \
    "[[\"<unk>\", 0], [\"a\", -1], [\"b\", -2], [\"ab\", -2.5], [\"<0xC3>\", -9], [\"<0xA9>\", " \
    "-9], "                                                                                      \
    "[\"zz\", 90]]"

static void test_unknown_characters_are_one_token_or_bytes(void **state)
{
    (void)state;
    expect_ids("{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": " PIECES "}}",
               "ab\xc3\xa9??a", (const int32_t[]){3, 0, 1}, 3);
    expect_ids("{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"byte_fallback\": true, "
               "\"vocab\": " PIECES "}}",
               "ab\xc3\xa9"
               "a?a",
               (const int32_t[]){3, 4, 5, 1, 0, 1}, 6);
}

/* The sums in both orders are equal, but not with the library's rounding. */
static void test_the_last_place_of_a_score_is_the_librarys(void **state)
{
    (void)state;
    expect_ids("{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"?\", 0], "
               "[\"m\", -2.2618696689605713], [\"x\", -7.1279706954956055], "
               "[\"xx\", -9.083630561828613]]}}",
               "mxxxxx", (const int32_t[]){1, 3, 3, 2}, 4);
}

static void test_without_an_unknown_token_the_text_is_named(void **state)
{
    dt_bpe *bpe =
        parse("{\"model\": {\"type\": \"Unigram\", \"unk_id\": null, \"vocab\": " PIECES "}}");
    dt_error err = DT_ERROR_INIT;
    dt_ids ids = {0};

    (void)state;
    assert_int_equal(encode(&ids, bpe, "aba", 3, &err), DT_OK);
    assert_int_equal(encode(&ids, bpe, "abxy", 4, &err), DT_ERR_USAGE);
    assert_non_null(strstr(err.message, "'xy' has no token"));
    dt_ids_release(&ids);
    dt_bpe_free(bpe);
}

static char *repeated(const char *text, size_t length)
{
    char *out = malloc(length);

    assert_non_null(out);
    for (size_t i = 0; i < length; i++)
        out[i] = text[i % strlen(text)];
    return out;
}

static void test_a_million_bytes_without_a_space_take_less_than_a_second(void **state)
{
    dt_bpe *bpe =
        parse("{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": " PIECES "}}");
    char *text = repeated("ab", MILLION), *unknown = repeated("?", MILLION);
    dt_ids ids = {0};

    (void)state;
    assert_int_equal(encode(&ids, bpe, text, MILLION, NULL), DT_OK);
    assert_int_equal(ids.count, MILLION / 2);
    assert_int_equal(ids.items[0], 3);
    assert_int_equal(encode(&ids, bpe, unknown, MILLION, NULL), DT_OK);
    assert_int_equal(ids.count, 1);
    free(text);
    free(unknown);
    dt_ids_release(&ids);
    dt_bpe_free(bpe);
}

/* A million bytes of marks of two combining classes in alternation, without a letter before them: each form sorts
 * them by class. */
static void test_a_million_marks_in_a_row_take_less_than_a_second(void **state)
{
    static const char *const forms[] = {"NFC", "NFD", "NFKC", "NFKD"};
    char *text = repeated("\xcc\x81\xcc\xa3", MILLION);

    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        dt_ids ids = {0};
        dt_strbuf file;
        dt_bpe *bpe;

        dt_strbuf_init(&file);
        dt_strbuf_add_fmt(&file,
                          "{\"normalizer\": {\"type\": \"%s\"}, \"model\": {\"type\": \"Unigram\", "
                          "\"unk_id\": 0, "
                          "\"vocab\": [[\"?\", 0], [\"\xcc\x81\", -1], [\"\xcc\xa3\", -1]]}}",
                          forms[i]);
        bpe = parse(file.data);
        assert_int_equal(encode(&ids, bpe, text, MILLION, NULL), DT_OK);
        assert_int_equal(ids.count, MILLION / 2);
        assert_int_equal(ids.items[0], 2); /* U+0323, of class 220 */
        assert_int_equal(ids.items[ids.count - 1], 1);
        dt_ids_release(&ids);
        dt_strbuf_release(&file);
        dt_bpe_free(bpe);
    }
    free(text);
}

/* Rows of spaces, which a stage searches at the end of a piece, and characters that no stage matches. */
static void test_long_pieces_between_matches_take_less_than_a_second(void **state)
{
    dt_bpe *bpe = parse("{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": ["
                        "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"[\\r\\n]\"}, "
                        "\"behavior\": \"Isolated\", \"invert\": false}, "
                        "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\s?\\\\p{L}+\"}, "
                        "\"behavior\": \"Isolated\", \"invert\": "
                        "false}, {\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\s+$\"}, "
                        "\"behavior\": \"Isolated\", \"invert\": "
                        "false}]}, \"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": "
                        "[[\"<unk>\", 0], [\" \", -1], [\".\", -1]]}}");
    char *text = repeated(" ", MILLION);
    dt_ids ids = {0};

    (void)state;
    text[MILLION / 2] = '.';
    assert_int_equal(encode(&ids, bpe, text, MILLION, NULL), DT_OK);
    assert_int_equal(ids.count, MILLION);
    dt_ids_release(&ids);
    dt_bpe_free(bpe);
    free(text);
}

/* --- the tokenizer of tests/golden/tokens/t5.json */

static dt_bpe *load(const char *path)
{
    dt_strbuf text;
    dt_bpe *bpe;

    dt_strbuf_init(&text);
    assert_int_equal(dt_file_read(&text, path, DT_BPE_MAX_BYTES, NULL), DT_OK);
    bpe = parse(text.data);
    dt_strbuf_release(&text);
    return bpe;
}

static void test_parts_have_the_tokens_of_the_whole(void **state)
{
    static const char text[] =
        "The first line.\nThe second,\tone \xef\xac\x81ne.\n\n The third\nand last  one\n";
    dt_bpe *bpe = load("tests/golden/tokens/t5.json");
    dt_ids whole = {0}, part = {0};
    size_t length = sizeof(text) - 1, cuts = 0;

    (void)state;
    assert_int_equal(encode(&whole, bpe, text, length, NULL), DT_OK);
    for (size_t at = dt_bpe_cut(bpe, text, length, 1); at < length;
         at = dt_bpe_cut(bpe, text, length, at + 1)) {
        assert_int_equal(encode(&part, bpe, text, at, NULL), DT_OK);
        assert_memory_equal(part.items, whole.items, part.count * sizeof(part.items[0]));
        size_t before = part.count;

        assert_int_equal(encode(&part, bpe, text + at, length - at, NULL), DT_OK);
        assert_int_equal(before + part.count, whole.count);
        assert_memory_equal(part.items, whole.items + before, part.count * sizeof(part.items[0]));
        cuts++;
    }
    assert_int_equal(cuts, 2);
    dt_ids_release(&whole);
    dt_ids_release(&part);
    dt_bpe_free(bpe);
}

/* Returns where a text is first cut by a fixture in which `key` was replaced, or extended if it is a list. */
static size_t cut_with(const char *path, const char *key, const char *json, const char *text)
{
    json_t *file = json_load_file(path, 0, NULL), *value = json_loads(json, JSON_DECODE_ANY, NULL);
    char *dump;
    dt_bpe *bpe;
    size_t at;

    assert_true(file != NULL && value != NULL);
    if (json_is_array(json_object_get(file, key)))
        json_array_append_new(json_object_get(file, key), value);
    else
        json_object_set_new(file, key, value);
    dump = json_dumps(file, JSON_COMPACT);
    assert_int_equal(dt_bpe_parse(&bpe, dump, strlen(dump), "changed", NULL), DT_OK);
    at = dt_bpe_cut(bpe, text, strlen(text), 1);
    dt_bpe_free(bpe);
    free(dump);
    json_decref(file);
    return at;
}

/* A cut would change the ids of a step that depends on the ends of a text, or of an added token across lines. */
static void test_a_text_is_not_cut_where_its_ids_depend_on_both_lines(void **state)
{
    static const char gpt2[] = "tests/golden/tokens/gpt2.json",
                      t5[] = "tests/golden/tokens/t5.json";
    static const char text[] = "in New\nYork now";

    (void)state;
    assert_int_equal(cut_with(gpt2, "normalizer", "{\"type\": \"NFC\"}", text), 7);
    assert_int_equal(cut_with(gpt2, "normalizer",
                              "{\"type\": \"Strip\", \"strip_left\": false, "
                              "\"strip_right\": true}",
                              text),
                     sizeof(text) - 1);
    assert_int_equal(cut_with(gpt2, "normalizer", "{\"type\": \"Nmt\"}", text), sizeof(text) - 1);
    assert_int_equal(cut_with(t5, "version", "\"1.0\"", text), 7);
    assert_int_equal(cut_with(t5, "added_tokens",
                              "{\"id\": 90000, \"content\": \"New York\", \"normalized\": true, "
                              "\"special\": false}",
                              text),
                     sizeof(text) - 1);
}

static void test_text_comes_back_and_ends_with_the_end(void **state)
{
    static const char text[] = "The training run saves its checkpoints, and resumes.";
    dt_bpe *bpe = load("tests/golden/tokens/t5.json");
    dt_bpe_around around = dt_bpe_get_around(bpe);
    dt_ids ids = {0};
    dt_strbuf back;

    (void)state;
    dt_strbuf_init(&back);
    assert_int_equal(encode(&ids, bpe, text, strlen(text), NULL), DT_OK);
    for (size_t i = 0; i < ids.count; i++)
        dt_bpe_decode(&back, bpe, ids.items[i]);
    assert_true(dt_bpe_drops_first_space(bpe));
    assert_string_equal(back.data + 1, text); /* the first word's mark becomes a space */
    assert_int_equal(around.before_count, 0);
    assert_int_equal(around.after_count, 1);
    assert_int_equal(around.after[0], dt_bpe_end_of_text(bpe));
    dt_strbuf_release(&back);
    dt_ids_release(&ids);
    dt_bpe_free(bpe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_characters_are_one_token_or_bytes),
        cmocka_unit_test(test_the_last_place_of_a_score_is_the_librarys),
        cmocka_unit_test(test_without_an_unknown_token_the_text_is_named),
        cmocka_unit_test(test_a_million_bytes_without_a_space_take_less_than_a_second),
        cmocka_unit_test(test_a_million_marks_in_a_row_take_less_than_a_second),
        cmocka_unit_test(test_long_pieces_between_matches_take_less_than_a_second),
        cmocka_unit_test(test_parts_have_the_tokens_of_the_whole),
        cmocka_unit_test(test_a_text_is_not_cut_where_its_ids_depend_on_both_lines),
        cmocka_unit_test(test_text_comes_back_and_ends_with_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
