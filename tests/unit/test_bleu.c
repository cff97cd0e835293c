/* BLEU equals sacreBLEU's: the counts exactly, the scores up to rounding. The fixture comes from
 * tests/golden/make_bleu_fixture.py. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "engine/bleu/bleu.h"

static void add(dt_bleu_counts *counts, const json_t *one, size_t line)
{
    json_t *ours = json_array_get(json_object_get(one, "hypotheses"), line);
    json_t *theirs = json_array_get(json_object_get(one, "references"), line);
    dt_error err = DT_ERROR_INIT;
    dt_bleu_words words;

    assert_true(dt_bleu_words_find(&words, json_string_value(json_object_get(one, "tokenize"))));
    assert_int_equal(dt_bleu_add(counts, words, json_string_value(ours), json_string_length(ours),
                                 json_string_value(theirs), json_string_length(theirs), &err),
                     DT_OK);
}

static double number(const json_t *one, const char *name)
{
    return json_number_value(json_object_get(one, name));
}

static int64_t whole(const json_t *one, const char *name, size_t at)
{
    return json_integer_value(json_array_get(json_object_get(one, name), at));
}

static void compare(const json_t *one)
{
    size_t lines = json_array_size(json_object_get(one, "hypotheses"));
    dt_bleu_counts counts = {.length = 0};
    dt_bleu bleu;

    for (size_t i = lines; i-- > 0;) /* in any order */
        add(&counts, one, i);
    bleu = dt_bleu_of(&counts);
    for (size_t i = 0; i < DT_BLEU_ORDERS; i++) {
        assert_int_equal(counts.matched[i], whole(one, "matched", i));
        assert_int_equal(counts.made[i], whole(one, "made", i));
        assert_true(fabs(bleu.precisions[i] - json_number_value(json_array_get(
                                                  json_object_get(one, "precisions"), i))) < 1e-9);
    }
    assert_int_equal(counts.length, (int64_t)number(one, "length"));
    assert_int_equal(counts.reference_length, (int64_t)number(one, "reference_length"));
    assert_true(fabs(bleu.brevity - number(one, "brevity")) < 1e-12);
    assert_true(fabs(bleu.score - number(one, "score")) < 1e-9);
}

static void equals_sacrebleu(void **state)
{
    json_t *cases = NULL, *one;
    dt_error err = DT_ERROR_INIT;
    dt_strbuf text;
    size_t i;

    (void)state;
    dt_strbuf_init(&text);
    assert_int_equal(dt_file_read(&text, "tests/golden/bleu/cases.json", 1 << 20, &err), DT_OK);
    cases = json_loadb(text.data, text.length, 0, NULL);
    dt_strbuf_release(&text);
    assert_true(json_array_size(cases) > 40);
    json_array_foreach(cases, i, one)
        compare(one);
    json_decref(cases);
}

/* Bytes that are not UTF-8, and a zero byte, count as characters. */
static void takes_any_bytes(void **state)
{
    static const char line[] = "a\xff b\0c \xe6\x97 d.";
    dt_bleu_counts counts = {.length = 0};
    dt_error err = DT_ERROR_INIT;

    (void)state;
    assert_int_equal(dt_bleu_add(&counts, DT_BLEU_WORDS_13A, line, sizeof(line) - 1, line,
                                 sizeof(line) - 1, &err),
                     DT_OK);
    assert_int_equal(counts.length, 5);
    assert_true(fabs(dt_bleu_of(&counts).score - 100) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equals_sacrebleu),
                                       cmocka_unit_test(takes_any_bytes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
