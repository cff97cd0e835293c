/* Tokenizer files that are damaged or use an unsupported feature are refused, with its name in the message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "engine/tokens/bpe.h"

#define BYTES "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}"
#define MODEL                                                                                      \
    "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, \"merges\": [\"a " \
    "b\"]}"

#define CHARSMAP(base64)                                                               \
    "{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"" base64 \
    "\"}, " MODEL "}"
#define UNIGRAM(vocab, unknown) \
    "{\"model\": {\"type\": \"Unigram\", \"unk_id\": " unknown ", \"vocab\": " vocab "}}"
#define STAGE(pattern)                                                              \
    "{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"" pattern \
    "\"}, \"behavior\": "                                                           \
    "\"Isolated\", \"invert\": false}, " MODEL "}"

#define WORDPIECE(vocab, most)                                                                    \
    "{\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"u\", \"continuing_subword_prefix\": " \
    "\"##\", \"max_input_chars_per_word\": " most ", \"vocab\": " vocab "}}"
#define REPLACE(regex)                                                           \
    "{\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"Regex\": \"" regex \
    "\"}, \"content\": \"y\"}, " MODEL "}"

typedef struct wrong_file {
    const char *text, *word; /* `word`: part of the message */
    dt_status st;
} wrong_file;

static const wrong_file wrong[] = {
    {"", "empty", DT_ERR_CORRUPT},
    {" \n ", "empty", DT_ERR_CORRUPT},
    {"{", "not JSON", DT_ERR_CORRUPT},
    {"{}", "'model'", DT_ERR_CORRUPT},
    {"[1]", "line 1", DT_ERR_CORRUPT},
    {"IQ== 0\nIg==\n", "line 2", DT_ERR_CORRUPT},
    {"IQ== 0\nIg== 1\n", "how text is split: expected", DT_ERR_UNSUPPORTED},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"\\ud800\": 0}, \"merges\": []}}", "not JSON",
     DT_ERR_CORRUPT},
    {"{\"model\": {\"type\": \"WordLevel\", \"vocab\": {}}}", "'WordLevel'", DT_ERR_UNSUPPORTED},
    {"{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 0}}}", "'continuing_subword_prefix'",
     DT_ERR_CORRUPT},
    {WORDPIECE("{}", "100"), "'vocab'", DT_ERR_CORRUPT},
    {WORDPIECE("{\"a\": 0}", "100"), "'unk_token' is not in the vocabulary", DT_ERR_CORRUPT},
    {WORDPIECE("{\"u\": 0}", "-1"), "'max_input_chars_per_word'", DT_ERR_CORRUPT},
    {WORDPIECE("{\"u\": 0}", "1, \"colour\": 2"), "'colour'", DT_ERR_UNSUPPORTED},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": []}}", "'vocab'", DT_ERR_CORRUPT},
    {"{\"colour\": 1, " MODEL "}", "'colour'", DT_ERR_UNSUPPORTED},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"\\u0000\": 0}, \"merges\": []}}", "U+0000",
     DT_ERR_CORRUPT},
    {"{\"version\": \"2.0\", " MODEL "}", "2.0", DT_ERR_UNSUPPORTED},
    {"{\"normalizer\": {\"type\": \"BertNormalizer\", \"lowercase\": 1}, " MODEL "}", "'lowercase'",
     DT_ERR_CORRUPT},
    {"{\"normalizer\": {\"type\": \"BertNormalizer\", \"strict\": true}, " MODEL "}", "'strict'",
     DT_ERR_UNSUPPORTED},
    {REPLACE("a*"), "'a*'", DT_ERR_UNSUPPORTED},
    {REPLACE("a+a"), "'a+a'", DT_ERR_UNSUPPORTED},
    {REPLACE("\\\\s+\\u00a0"), "Regex", DT_ERR_UNSUPPORTED},
    {REPLACE("a{0,}"), "'a{0,}'", DT_ERR_UNSUPPORTED},
    {REPLACE("a{3,2}"), "'a{3,2}'", DT_ERR_UNSUPPORTED},
    {REPLACE("a|b|c"), "'a|b|c'", DT_ERR_UNSUPPORTED},
    {REPLACE("^a+$"), "'^a+$'", DT_ERR_UNSUPPORTED}, /* it also matches at line breaks */
    {REPLACE("^a"), "'^a'", DT_ERR_UNSUPPORTED},
    {REPLACE("(a)"), "'(a)'", DT_ERR_UNSUPPORTED},
    {REPLACE(""), "''", DT_ERR_UNSUPPORTED},
    {"{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": "
     "\"ByteLevel\"}]}, " MODEL "}",
     "'ByteLevel'", DT_ERR_UNSUPPORTED},
    {"{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": 7}, " MODEL "}",
     "expected a text", DT_ERR_CORRUPT},
    {CHARSMAP(""), "'precompiled_charsmap' is empty", DT_ERR_CORRUPT},
    {CHARSMAP("AAA!"), "not base64", DT_ERR_CORRUPT},
    {CHARSMAP("BAA="), "the tree has 0 bytes, and the whole map 2", DT_ERR_CORRUPT},
    {CHARSMAP("CAAAAAAAAAA="), "the tree has 8 bytes, and the whole map 8", DT_ERR_CORRUPT},
    {CHARSMAP("BAAAAAAAAAD/"), "byte 0 of the replacements is not UTF-8", DT_ERR_CORRUPT},
    {CHARSMAP("BAAAAAUAAIA="), "points to byte 5 of 0 bytes", DT_ERR_CORRUPT},
    {CHARSMAP("BAAAAAEAAIDDqQ=="), "points to byte 1 of 2 bytes", DT_ERR_CORRUPT},
    {UNIGRAM("[]", "null"), "'vocab'", DT_ERR_CORRUPT},
    {UNIGRAM("{\"a\": 0}", "null"), "'vocab'", DT_ERR_CORRUPT},
    {UNIGRAM("[[\"a\", -1.0], [\"b\"]]", "0"), "item 1", DT_ERR_CORRUPT},
    {UNIGRAM("[[\"a\", \"-1\"]]", "0"), "item 0", DT_ERR_CORRUPT},
    {UNIGRAM("[[\"a\", NaN]]", "0"), "not JSON", DT_ERR_CORRUPT},
    {UNIGRAM("[[\"a\", -1e999]]", "0"), "not JSON", DT_ERR_CORRUPT},
    {UNIGRAM("[[\"a\", -1.0]]", "1"), "'unk_id'", DT_ERR_CORRUPT},
    {UNIGRAM("[[\"a\", -1.0]]", "-1"), "'unk_id'", DT_ERR_CORRUPT},
    {UNIGRAM("[[\"a\", -1.0]]", "\"a\""), "'unk_id'", DT_ERR_CORRUPT},
    {"{" BYTES ", \"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"a\", 0]]}}",
     "ByteLevel", DT_ERR_UNSUPPORTED},
    {"{\"added_tokens\": [{\"id\": 7, \"content\": \"a\"}], \"model\": {\"type\": \"Unigram\", "
     "\"unk_id\": 0, "
     "\"vocab\": [[\"a\", 0]]}}",
     "id 7", DT_ERR_CORRUPT},
    {"{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Metaspace\", "
     "\"replacement\": "
     "\"_\"}, {\"type\": \"WhitespaceSplit\"}]}, " MODEL "}",
     "after Metaspace", DT_ERR_UNSUPPORTED},
    {"{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\"}, "
     "{\"type\": \"Metaspace\", \"replacement\": \"_\"}]}, " MODEL "}",
     "Metaspace in a sequence", DT_ERR_UNSUPPORTED},
    {STAGE("\\\\s+$"), "'\\s+$'", DT_ERR_UNSUPPORTED},
    {STAGE("[^a]"), "'[^a]'", DT_ERR_UNSUPPORTED},
    {STAGE("[a-"), "'[a-'", DT_ERR_UNSUPPORTED},
    {STAGE("\\\\p{Han}+"), "Han", DT_ERR_UNSUPPORTED},
    {STAGE("a*"), "'a*'", DT_ERR_UNSUPPORTED},
    {STAGE(""), "''", DT_ERR_UNSUPPORTED},
    {"{\"normalizer\": {\"type\": \"NFC\", \"strict\": true}, " MODEL "}", "'strict'",
     DT_ERR_UNSUPPORTED},
    {"{\"normalizer\": {\"type\": \"Replace\", \"pattern\": {}, \"content\": \"y\"}, " MODEL "}",
     "no pattern", DT_ERR_CORRUPT},
    {"{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\"}, "
     "{\"type\": \"BertPreTokenizer\"}]}, " MODEL "}",
     "'BertPreTokenizer'", DT_ERR_UNSUPPORTED},
    {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \"xy\"}, \"behavior\": "
     "\"MergedWithPrevious\"}, " MODEL "}",
     "MergedWithPrevious", DT_ERR_UNSUPPORTED},
    {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"[a-z]+x\"}, "
     "\"behavior\": "
     "\"Isolated\", \"invert\": false}, " MODEL "}",
     "[a-z]+x", DT_ERR_UNSUPPORTED},
    {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"x\"}, \"behavior\": "
     "\"Removed\"}, " MODEL "}",
     "'Removed'", DT_ERR_UNSUPPORTED},
    {"{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"ByteLevel\"}, "
     "{\"type\": \"Digits\", \"individual_digits\": true}]}, " MODEL "}",
     "ByteLevel", DT_ERR_UNSUPPORTED},
    {"{\"decoder\": {\"type\": \"WordPiece\"}, " MODEL "}", "'prefix'", DT_ERR_CORRUPT},
    {"{\"decoder\": {\"type\": \"CTC\"}, " MODEL "}", "'CTC'", DT_ERR_UNSUPPORTED},
    {"{\"decoder\": {\"type\": \"Metaspace\", \"replacement\": \"\"}, " MODEL "}",
     "'replacement' is empty", DT_ERR_CORRUPT},
    {"{\"decoder\": {\"type\": \"Metaspace\", \"replacement\": \"_\", \"prepend_scheme\": "
     "\"last\"}, " MODEL "}",
     "prepend_scheme 'last'", DT_ERR_UNSUPPORTED},
    {"{\"post_processor\": {\"type\": \"Own\"}, " MODEL "}", "'Own'", DT_ERR_UNSUPPORTED},
    {"{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": "
     "{\"id\": \"<s>\"}}, {\"Sequence\": {\"id\": \"A\"}}]}, " MODEL "}",
     "'<s>'", DT_ERR_CORRUPT},
    {"{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": []}, " MODEL "}",
     "no sequence", DT_ERR_UNSUPPORTED},
    {"{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": {}}, "
     "{\"Sequence\": {}}]}, " MODEL "}",
     "item 2", DT_ERR_UNSUPPORTED},
    {"{\"post_processor\": {\"type\": \"BertProcessing\", \"cls\": [\"a\", 3], \"sep\": "
     "[\"b\", 1]}, " MODEL "}",
     "not in the vocabulary", DT_ERR_CORRUPT},
    {"{\"post_processor\": {\"type\": \"RobertaProcessing\", \"cls\": [\"a\", 0]}, " MODEL "}",
     "'sep'", DT_ERR_CORRUPT},
    {"{\"model\": {\"type\": \"BPE\", \"dropout\": 0.1, \"vocab\": {\"a\": 0}, \"merges\": []}}",
     "'dropout'", DT_ERR_UNSUPPORTED},
    {"{\"model\": {\"type\": \"BPE\", \"end_of_word_suffix\": \"@\", \"vocab\": {\"a\": 0}, "
     "\"merges\": []}}",
     "'end_of_word_suffix'", DT_ERR_UNSUPPORTED},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 0}, \"merges\": []}}",
     "two tokens have the id 0", DT_ERR_CORRUPT},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 99999999999}, \"merges\": []}}",
     "99999999999", DT_ERR_CORRUPT},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": -1}, \"merges\": []}}", "-1",
     DT_ERR_CORRUPT},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": [\"a b\"]}}",
     "merge 0 needs 'ab'", DT_ERR_CORRUPT},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"ac\": 1}, \"merges\": [[\"a\", "
     "\"c\"]]}}",
     "merge 0 needs 'c'", DT_ERR_CORRUPT},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [[\"a\"]]}}", "merge 0",
     DT_ERR_CORRUPT},
    {"{\"model\": {\"type\": \"BPE\", \"unk_token\": \"?\", \"vocab\": {\"a\": 0}, \"merges\": "
     "[]}}",
     "'unk_token'", DT_ERR_CORRUPT},
    {"{\"added_tokens\": [{\"id\": 7, \"content\": \"a\"}], " MODEL "}", "id 7", DT_ERR_CORRUPT},
    {"{\"added_tokens\": [{\"id\": 1, \"content\": \"x\"}], " MODEL "}", "id 1", DT_ERR_CORRUPT},
    {"{\"added_tokens\": [{\"id\": 7, \"content\": \"\"}], " MODEL "}", "empty", DT_ERR_CORRUPT},
    {"{\"added_tokens\": [{\"id\": 7, \"content\": \"x\", \"single_word\": true}], " MODEL "}",
     "'single_word'", DT_ERR_UNSUPPORTED},
};

static void test_what_is_not_known_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        dt_error err = DT_ERROR_INIT;
        dt_bpe *bpe;
        dt_status st = dt_bpe_parse(&bpe, wrong[i].text, strlen(wrong[i].text), "own.json", &err);

        if (st != wrong[i].st || strstr(err.message, wrong[i].word) == NULL ||
            strstr(err.message, "own.json") == NULL)
            fail_msg("%s\ngives %s: %s", wrong[i].text, dt_status_name(st), err.message);
        assert_null(bpe);
    }
}

static void encode(dt_ids *out, dt_status wanted, const char *file, const char *text)
{
    dt_error err = DT_ERROR_INIT;
    dt_bpe_encoder *encoder;
    dt_bpe *bpe;

    if (dt_bpe_parse(&bpe, file, strlen(file), "own.json", &err) != DT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(dt_bpe_encoder_open(&encoder, bpe, NULL), DT_OK);
    assert_int_equal(dt_bpe_encode(out, encoder, text, strlen(text), NULL), wanted);
    dt_bpe_encoder_close(encoder);
    dt_bpe_free(bpe);
}

static void test_a_byte_without_a_token_is_an_error(void **state)
{
    dt_ids ids = {0};

    (void)state;
    encode(&ids, DT_OK, "{" BYTES ", " MODEL "}", "abba");
    assert_int_equal(ids.count, 3);
    encode(&ids, DT_ERR_USAGE, "{" BYTES ", " MODEL "}", "abc");
    encode(&ids, DT_ERR_USAGE, "{" MODEL "}", "abc");
    dt_ids_release(&ids);
}

/* Numbers may have gaps, and the longest of overlapping added tokens is used. */
static void test_added_tokens_may_overlap(void **state)
{
    static const char file[] = "{" BYTES ", \"added_tokens\": ["
                               "{\"id\": 9, \"content\": \"<x>\", \"special\": true}, "
                               "{\"id\": 12, \"content\": \"<x><y>\", \"special\": true}, "
                               "{\"id\": 10, \"content\": \"<y>\", \"special\": true}], " MODEL "}";
    static const int32_t wanted[] = {2, 12, 9, 0, 10};
    dt_ids ids = {0};

    (void)state;
    encode(&ids, DT_OK, file, "ab<x><y><x>a<y>");
    assert_int_equal(ids.count, 5);
    assert_memory_equal(ids.items, wanted, sizeof(wanted));
    dt_ids_release(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_known_is_refused_by_name),
        cmocka_unit_test(test_a_byte_without_a_token_is_an_error),
        cmocka_unit_test(test_added_tokens_may_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
