/* Learned pairs are those of the definition, which counts all pairs again for every merge; the
 * written tokenizer gives the same merges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/tokens/bpe.h"
#include "runner/corpus/corpus_int.h"

#define FIRST 257 /* an end-of-text token and the 256 bytes */
#define VOCAB 340
#define MOST  400 /* bytes of a text */

static const char *const special[] = {"<|endoftext|>"};

/* --- the definition: text as ids with -1 between words; counts every pair for every merge */

typedef struct plain {
    int32_t ids[2 * MOST];
    int count;
} plain;

static int count_pair(const plain *text, int32_t first, int32_t second)
{
    int found = 0;

    for (int i = 0; i + 1 < text->count; i++)
        found += text->ids[i] == first && text->ids[i + 1] == second;
    return found;
}

static int find_best(const plain *text, dt_bpe_merge *best)
{
    int most = 0;

    for (int i = 0; i + 1 < text->count; i++) {
        dt_bpe_merge pair = {text->ids[i], text->ids[i + 1]};
        int found =
            pair.first < 0 || pair.second < 0 ? 0 : count_pair(text, pair.first, pair.second);

        if (found > most || (found == most && found > 0 &&
                             (pair.first < best->first ||
                              (pair.first == best->first && pair.second < best->second)))) {
            most = found;
            *best = pair;
        }
    }
    return most;
}

static void merge(plain *text, const dt_bpe_merge *pair, int32_t id)
{
    int to = 0;

    for (int from = 0; from < text->count; to++) {
        bool here = from + 1 < text->count && text->ids[from] == pair->first &&
                    text->ids[from + 1] == pair->second;

        text->ids[to] = here ? id : text->ids[from];
        from += here ? 2 : 1;
    }
    text->count = to;
}

/* Overlapping pairs ("aaa" has two) are counted differently by the trainer: texts with a letter
 * twice in a row are compared only with the library. */
static void make_text(char *out, unsigned seed)
{
    const char *letters = seed % 2 == 0 ? "abc " : "abcde\n ,x1";
    size_t kinds = strlen(letters), length = 60 + seed % (MOST - 61);

    srand(seed);
    for (size_t i = 0; i < length; i++)
        do
            out[i] = letters[(size_t)rand() % kinds];
        while (i > 0 && out[i] == out[i - 1]);
    out[length] = '\0';
}

static void check_text(const char *text, int64_t least)
{
    const dt_split split = {{{.kind = DT_SPLIT_GPT2}}, 1};
    const dt_learn_options options = {VOCAB, least, NULL};
    dt_error err = DT_ERROR_INIT;
    dt_bpe_merge *merges, best = {0};
    plain whole = {.count = 0};
    const unsigned char *at = (const unsigned char *)text, *next;
    dt_splitter splitter;
    dt_bpe_draft draft;
    dt_words words;

    assert_int_equal(dt_bpe_draft_begin(&draft, special, 1, DT_SPLIT_GPT2, &err), DT_OK);
    dt_words_init(&words);
    assert_int_equal(dt_words_add_text(&words, &split, text, strlen(text), &err), DT_OK);
    dt_splitter_begin(&splitter, &split, text, strlen(text));
    while (*at != '\0') {
        for (next = dt_splitter_next(&splitter, at); at < next; at++)
            whole.ids[whole.count++] = dt_vocab_find(&draft.vocab, at, 1);
        whole.ids[whole.count++] = -1;
    }
    assert_int_equal(dt_learn_merges(&draft, &merges, &words, &options, &err), DT_OK);
    for (int64_t i = 0; i < draft.merge_count; i++) {
        assert_true(find_best(&whole, &best) >= least);
        assert_int_equal(best.first, merges[i].first);
        assert_int_equal(best.second, merges[i].second);
        merge(&whole, &best, FIRST + (int32_t)i);
    }
    if (draft.vocab.size < VOCAB)
        assert_true(find_best(&whole, &best) < least);
    free(merges);
    dt_bpe_draft_release(&draft);
    dt_words_release(&words);
}

static void test_merges_are_those_of_the_definition(void **state)
{
    char text[MOST + 1];

    (void)state;
    for (unsigned seed = 0; seed < 60; seed++) {
        make_text(text, seed);
        check_text(text, 1 + seed % 3);
    }
    check_text("", 1);
    check_text("a", 1);
}

/* --- the written tokenizer */

static void check_written(dt_split_kind kind)
{
    const char text[] = "so is it, is it so; it is so in 1984 or 1985, isn't it\n\nis it";
    const dt_split split = {{{.kind = kind}}, 1};
    const dt_learn_options options = {300, 2, NULL};
    dt_error err = DT_ERROR_INIT;
    dt_bpe_encoder *encoder;
    dt_bpe_merge *merges;
    dt_bpe_draft draft;
    dt_ids ids = {0};
    dt_words words;
    dt_strbuf file;
    json_t *json;
    dt_bpe *bpe;

    dt_strbuf_init(&file);
    assert_int_equal(dt_bpe_draft_begin(&draft, special, 1, kind, &err), DT_OK);
    dt_words_init(&words);
    assert_int_equal(dt_words_add_text(&words, &split, text, sizeof(text) - 1, &err), DT_OK);
    assert_int_equal(dt_learn_merges(&draft, &merges, &words, &options, &err), DT_OK);
    assert_true(draft.merge_count > 3);
    json = dt_bpe_draft_json(&draft);
    dt_json_write_pretty(&file, json);
    if (dt_bpe_parse(&bpe, file.data, file.length, "tokenizer.json", &err) != DT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(dt_bpe_vocab(bpe), draft.vocab.size);
    assert_int_equal(dt_bpe_end_of_text(bpe), 0);
    assert_int_equal(dt_bpe_encoder_open(&encoder, bpe, &err), DT_OK);
    assert_int_equal(dt_bpe_encode(&ids, encoder, text, sizeof(text) - 1, &err), DT_OK);
    dt_strbuf_reset(&file);
    for (size_t i = 0; i < ids.count; i++)
        dt_bpe_decode(&file, bpe, ids.items[i]);
    assert_string_equal(file.data, text);
    assert_true(ids.count < sizeof(text) - 4);
    dt_ids_release(&ids);
    dt_bpe_encoder_close(encoder);
    dt_bpe_free(bpe);
    json_decref(json);
    free(merges);
    dt_words_release(&words);
    dt_bpe_draft_release(&draft);
    dt_strbuf_release(&file);
}

static void test_what_is_written_is_read(void **state)
{
    (void)state;
    check_written(DT_SPLIT_GPT2);
    check_written(DT_SPLIT_LLAMA3);
    check_written(DT_SPLIT_QWEN);
}

/* --- bad input */

static void test_special_tokens_are_checked(void **state)
{
    static const char *const twice[] = {"<s>", "<s>"}, *const empty[] = {""}, *const byte[] = {"a"};
    dt_error err = DT_ERROR_INIT;
    dt_bpe_draft draft;

    (void)state;
    assert_int_equal(dt_bpe_draft_begin(&draft, twice, 2, DT_SPLIT_GPT2, &err), DT_ERR_USAGE);
    dt_bpe_draft_release(&draft);
    assert_int_equal(dt_bpe_draft_begin(&draft, empty, 1, DT_SPLIT_GPT2, &err), DT_ERR_USAGE);
    dt_bpe_draft_release(&draft);
    assert_int_equal(dt_bpe_draft_begin(&draft, byte, 1, DT_SPLIT_GPT2, &err), DT_ERR_USAGE);
    dt_bpe_draft_release(&draft);
}

static void test_a_long_word_is_counted_in_pieces(void **state)
{
    const dt_split split = {{{.kind = DT_SPLIT_GPT2}}, 1};
    size_t length = DT_WORD_MAX * 2 + 10;
    dt_error err = DT_ERROR_INIT;
    char *text = malloc(length);
    dt_words words;

    (void)state;
    for (size_t i = 0; i + 2 <= length; i += 2)
        memcpy(text + i, "\xc3\xa9", 2); /* é: a cut must not be inside it */
    dt_words_init(&words);
    assert_int_equal(dt_words_add_text(&words, &split, text, length, &err), DT_OK);
    assert_int_equal(words.used, 2);
    text[7] = 'x';
    assert_int_equal(dt_words_add_text(&words, &split, text, length, &err), DT_ERR_USAGE);
    assert_non_null(strstr(err.message, "byte 6"));
    dt_words_release(&words);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merges_are_those_of_the_definition),
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_special_tokens_are_checked),
        cmocka_unit_test(test_a_long_word_is_counted_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
