/* Words and white space as Python has them, broken characters, comparing answers, and the totals of rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "engine/evaluation/evaluation.h"

static void test_words_are_those_of_python(void **state)
{
    (void)state;
    /* len(re.split(r"\s+", text)) */
    assert_int_equal(dt_evaluation_words("", 0), 1);
    assert_int_equal(dt_evaluation_words("a b", 3), 2);
    assert_int_equal(dt_evaluation_words(" a\n\n b ", 7), 4);
    assert_int_equal(dt_evaluation_words("a\xc2\xa0"
                                         "b\xe3\x80\x80"
                                         "c",
                                         8),
                     3); /* U+00A0, U+3000 */
    assert_int_equal(dt_evaluation_words("a\xe2\x80\x8b"
                                         "b",
                                         5),
                     1); /* U+200B is no space */
    assert_int_equal(dt_evaluation_blank_end("a \t\xc2\xa0\n", 6), 5);
    assert_int_equal(dt_evaluation_blank_end("  ", 2), 2);
    assert_int_equal(dt_evaluation_blank_end("a", 1), 0);
    assert_int_equal(dt_evaluation_characters("na\xc3\xafve"), 5);
}

static void test_broken_characters_become_one_replacement_each(void **state)
{
    /* as bytes.decode("utf-8", "replace") */
    static const struct {
        const char *bytes, *text;
    } cases[] = {{"a\xe2\x82"
                  "b",
                  "a\xef\xbf\xbd"
                  "b"},
                 {"\xe2\x28", "\xef\xbf\xbd("},
                 {"\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
                 {"\xf0\x9f\x98", "\xef\xbf\xbd"},
                 {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
                 {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
                 {"\xc3\xa9", "\xc3\xa9"}};
    dt_strbuf out;

    (void)state;
    dt_strbuf_init(&out);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_strbuf_reset(&out);
        dt_evaluation_add_valid(&out, cases[i].bytes, strlen(cases[i].bytes));
        assert_string_equal(out.data, cases[i].text);
    }
    dt_strbuf_release(&out);
}

/* Reads a row and returns whether a generated text matches. */
static bool matches(const char *json, const char *text)
{
    dt_evaluation_row row;
    dt_strbuf extracted;
    json_t *object;
    dt_arena arena;
    bool out;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&extracted);
    assert_int_equal(dt_json_parse(&object, json, strlen(json), "row", NULL), DT_OK);
    assert_int_equal(dt_evaluation_row_read(&row, object, "row", &arena, NULL), DT_OK);
    dt_evaluation_extract(&extracted, &row.compare, text);
    out = dt_evaluation_matches(&row, extracted.data);
    json_decref(object);
    dt_strbuf_release(&extracted);
    dt_arena_release(&arena);
    return out;
}

static void test_answers_are_compared(void **state)
{
    const char *math =
        "{\"prompt\": \"\", \"answer\": \"1,234\", \"extract\": \"#### (-?[0-9.,]+)\", \"remove\": "
        "[\",\", \"\\\\$\", \"\\\\.$\"]}";
    const char *last =
        "{\"prompt\": \"\", \"answer\": \"7\", \"extract\": \"[0-9]+\", \"extract_last\": true}";
    const char *any = "{\"prompt\": \"\", \"answer\": [\"Yes!\", \"no\"], \"ignore_case\": true, "
                      "\"ignore_punctuation\": true}";

    (void)state;
    assert_true(matches(math, "so it is\n#### 1234."));
    assert_true(matches(math, "#### 1234 or #### 5"));
    assert_false(matches(math, "1234"));
    assert_true(matches(last, "3 and 7"));
    assert_false(matches(last, "7 and 3"));
    assert_true(matches(any, "YES"));
    assert_true(matches(any, "N.O"));
    assert_false(matches(any, "yes "));
}

static void test_totals_follow_from_rows(void **state)
{
    static const char lines[] = "{\"task\": \"a\", \"kind\": \"choice\", \"acc\": 1, \"acc_norm\": "
                                "0, \"acc_bytes\": 0, \"cut\": 1}\n"
                                "{\"task\": \"t\", \"kind\": \"text\", \"log_likelihood\": -6, "
                                "\"tokens\": 2, \"words\": 2, \"bytes\": 4, \"cut\": 0}\n"
                                "{\"task\": \"a\", \"kind\": \"choice\", \"acc\": 0, \"acc_norm\": "
                                "0, \"acc_bytes\": 1, \"cut\": 0}\n"
                                "{\"task\": \"a\", \"kind\": \"choice\", \"acc\": 1, \"acc_norm\": "
                                "0, \"acc_bytes\": 1, \"cut\": 0}\n"
                                "{\"task\": \"t\", \"kind\": \"text\", \"log_likelihood\": -2, "
                                "\"tokens\": 2, \"words\": 1, \"bytes\": 4, \"cut\": 0}\n";
    dt_evaluation_results results, again;
    dt_arena arena;
    json_t *json;

    (void)state;
    dt_arena_init(&arena, 0);
    assert_int_equal(dt_evaluation_totals(&results, lines, strlen(lines), &arena, NULL), DT_OK);
    assert_int_equal(results.count, 2);
    assert_int_equal(results.items[0].rows, 3);
    assert_int_equal(results.items[0].cut, 1);
    assert_true(fabs(dt_evaluation_find(&results, "a", "acc")->value - 2.0 / 3) < 1e-15);
    assert_true(fabs(dt_evaluation_find(&results, "a", "acc")->error - 1.0 / 3) < 1e-15);
    assert_true(dt_evaluation_find(&results, "a", "acc_norm")->error == 0);
    assert_true(fabs(dt_evaluation_find(&results, "t", "byte_perplexity")->value - exp(1)) < 1e-14);
    /* R = -1 a byte, the rests are -2 and 2, so the error of R is sqrt(2 * 8) / 8 */
    assert_true(fabs(dt_evaluation_find(&results, "t", "byte_perplexity")->error - 0.5 * exp(1)) <
                1e-14);
    assert_true(fabs(dt_evaluation_find(&results, "t", "token_perplexity")->value - exp(2)) <
                1e-13);
    assert_null(dt_evaluation_find(&results, "t", "acc"));
    json = dt_evaluation_to_json(&results);
    assert_int_equal(dt_evaluation_from_json(&again, json, &arena, NULL), DT_OK);
    assert_true(dt_evaluation_find(&again, "a", "acc")->error ==
                dt_evaluation_find(&results, "a", "acc")->error);
    json_decref(json);
    assert_int_equal(dt_evaluation_totals(&results, "{}\n", 3, &arena, NULL), DT_ERR_CORRUPT);
    dt_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_are_those_of_python),
        cmocka_unit_test(test_broken_characters_become_one_replacement_each),
        cmocka_unit_test(test_answers_are_compared),
        cmocka_unit_test(test_totals_follow_from_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
