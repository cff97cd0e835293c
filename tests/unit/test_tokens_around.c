/* Tokens that a post-processor adds around a text, as in the library `tokenizers`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/tokens/bpe.h"

#define TEMPLATE                                                                           \
    "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"A\", "  \
    "\"type_id\": 0}}, "                                                                   \
    "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, {\"SpecialToken\": {\"id\": \"B\", " \
    "\"type_id\": "                                                                        \
    "0}}], \"pair\": [], \"special_tokens\": {\"A\": {\"id\": \"A\", \"ids\": [0, 2], "    \
    "\"tokens\": [\"a\", "                                                                 \
    "\"ab\"]}, \"B\": {\"id\": \"B\", \"ids\": [1], \"tokens\": [\"b\"]}}}"
#define BERT "{\"type\": \"BertProcessing\", \"sep\": [\"b\", 1], \"cls\": [\"a\", 0]}"

typedef struct around_case {
    const char *post_processor;
    int32_t before[4], after[4]; /* ended by -1 */
} around_case;

static const around_case cases[] = {
    {"null", {-1}, {-1}},
    {"{\"type\": \"ByteLevel\", \"trim_offsets\": true}", {-1}, {-1}},
    {TEMPLATE, {0, 2, -1}, {1, -1}},
    {BERT, {0, -1}, {1, -1}},
    {"{\"type\": \"RobertaProcessing\", \"sep\": [\"b\", 1], \"cls\": [\"ab\", 2], "
     "\"trim_offsets\": true, "
     "\"add_prefix_space\": false}",
     {2, -1},
     {1, -1}},
    {"{\"type\": \"Sequence\", \"processors\": [{\"type\": \"ByteLevel\"}, " BERT "]}",
     {0, -1},
     {1, -1}},
    /* the second processor encloses the first */
    {"{\"type\": \"Sequence\", \"processors\": [" BERT ", " TEMPLATE "]}",
     {0, 2, 0, -1},
     {1, 1, -1}},
};

static void expect_ids(const int32_t *ids, size_t count, const int32_t *wanted)
{
    size_t i = 0;

    for (; wanted[i] >= 0; i++)
        assert_int_equal(i < count ? ids[i] : -1, wanted[i]);
    assert_int_equal(count, i);
}

static void test_a_post_processor_goes_around_the_text(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_bpe_around around;
        dt_strbuf text;
        dt_bpe *bpe;

        dt_strbuf_init(&text);
        dt_strbuf_add_fmt(
            &text,
            "{\"post_processor\": %s, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": "
            "0, \"b\": 1, \"ab\": 2}, \"merges\": [\"a b\"]}}",
            cases[i].post_processor);
        assert_int_equal(dt_bpe_parse(&bpe, text.data, text.length, "tokenizer.json", NULL), DT_OK);
        around = dt_bpe_get_around(bpe);
        expect_ids(around.before, around.before_count, cases[i].before);
        expect_ids(around.after, around.after_count, cases[i].after);
        dt_bpe_free(bpe);
        dt_strbuf_release(&text);
    }
}

static void test_truncation_and_padding_are_ignored(void **state)
{
    static const char text[] =
        "{\"truncation\": {\"max_length\": 5}, \"padding\": {}, \"model\": {\"type\": "
        "\"BPE\", \"vocab\": {\"a\": 0}, \"merges\": []}}";
    dt_bpe *bpe;

    assert_int_equal(dt_bpe_parse(&bpe, text, strlen(text), "tokenizer.json", NULL), DT_OK);
    assert_true(dt_bpe_ignores_limits(bpe));
    dt_bpe_free(bpe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_post_processor_goes_around_the_text),
        cmocka_unit_test(test_truncation_and_padding_are_ignored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
