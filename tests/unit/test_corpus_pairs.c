/* Sentence pairs in every format give the same file of ids; errors name file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data_support.h"
#include "engine/data/sentences.h"
#include "engine/data/sides.h"
#include "runner/corpus/corpus.h"

static const char german[] = "das haus\r\nein baum\ndas neue haus\n";
static const char english[] = "the house\na tree\nthe house again";

static const int32_t source_ids[] = {4, 5, 2, 6, 7, 2, 4, 3, 5, 2};
static const int32_t target_ids[] = {4, 6, 2, 5, 7, 2, 4, 6, 3, 2};

static int make_folder(void **state)
{
    char path[128];
    data_folder *folder;

    if (data_folder_make(state) != 0)
        return 1;
    folder = *state;
    snprintf(path, sizeof(path), "%s/cache", folder->path);
    setenv("XDG_CACHE_HOME", path, 1);
    data_write_text(folder, "dict.de.txt", "das 9\nhaus 5\nein 4\nbaum 2\n");
    data_write_text(folder, "dict.en.txt", "the 9\na 5\nhouse 4\ntree 2\n");
    folder->recipe.data.tokenizer = dt_arena_printf(&folder->names, "%s", folder->path);
    folder->recipe.data.field = "text";
    folder->recipe.data.source = "de";
    folder->recipe.data.target = "en";
    folder->recipe.data.codes = "";
    return 0;
}

static dt_status prepare(data_folder *folder, dt_recipe *here, dt_prepared *made, dt_error *err)
{
    *here = folder->recipe;
    return dt_prepare_recipe(here, true, NULL, made, NULL, &folder->names, err);
}

static void compare_side(const dt_sentences *sentences, dt_language language, const int32_t *wanted,
                         size_t count)
{
    int32_t ids[64];
    size_t at = 0;

    for (int64_t i = 0; i < sentences->count; i++) {
        assert_int_equal(dt_sentence_read(ids + at, sentences, language, i, 8, NULL), DT_OK);
        at += (size_t)dt_sentence_length(sentences, language, i);
    }
    assert_int_equal(at, count);
    assert_memory_equal(ids, wanted, count * sizeof(*wanted));
}

/* The recipe's data must give the three pairs above. */
static void compare(data_folder *folder)
{
    dt_error err = DT_ERROR_INIT;
    dt_sentences sentences;
    dt_prepared made;
    dt_recipe here;

    if (prepare(folder, &here, &made, &err) != DT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(here.data.tokens, DT_TOKENS_PAIRS);
    assert_int_equal(here.data.train.count, 1);
    assert_int_equal(made.facts.documents, 3);
    assert_int_equal(made.facts.tokens, 20);
    if (dt_sentences_open(&sentences, here.data.train.items[0], &err) != DT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(sentences.count, 3);
    compare_side(&sentences, DT_SOURCE, source_ids, 10);
    compare_side(&sentences, DT_TARGET, target_ids, 10);
    dt_sentences_close(&sentences);
}

static void test_two_text_files_are_read_line_by_line(void **state)
{
    data_folder *folder = *state;
    dt_prepared made;
    dt_recipe here;

    data_write_text(folder, "train.de", german);
    data_write_text(folder, "train.en", english);
    data_train(folder, "train");
    compare(folder);
    assert_int_equal(prepare(folder, &here, &made, NULL), DT_OK);
    assert_true(made.found); /* made only once */
    assert_int_equal(made.facts.unknown, 2);
}

static void test_objects_a_line_are_read_by_key(void **state)
{
    data_folder *folder = *state;

    data_write_text(folder, "train.jsonl",
                    "{\"en\": \"the house\", \"de\": \"das haus\"}\n\n"
                    "{\"de\": \"ein baum\", \"en\": \"a tree\", \"x\": 1}\n"
                    "{\"de\": \"das neue haus\", \"en\": \"the house again\"}\n");
    data_train(folder, "train.jsonl");
    compare(folder);
}

static void test_columns_are_found_by_name_or_number(void **state)
{
    data_folder *folder = *state;

    data_write_text(folder, "train.csv",
                    "id,en,de\n1,the house,das haus\n2,\"a tree\",ein baum\n"
                    "3,\"the house again\",\"das neue\nhaus\"\n");
    data_train(folder, "train.csv");
    compare(folder);
    data_write_text(
        folder, "train.tsv",
        "de\ten\ndas haus\tthe house\nein baum\ta tree\ndas neue haus\tthe house again\n");
    folder->recipe.data.train.count = 0;
    data_train(folder, "train.tsv");
    compare(folder);
    data_write_text(folder, "bare.tsv",
                    "the house\tdas haus\na tree\tein baum\r\nthe house again\tdas neue haus\n");
    folder->recipe.data.train.count = 0;
    data_train(folder, "bare.tsv");
    data_write_text(folder, "dict.2.txt", "das 9\nhaus 5\nein 4\nbaum 2\n");
    data_write_text(folder, "dict.1.txt", "the 9\na 5\nhouse 4\ntree 2\n");
    folder->recipe.data.source = "2";
    folder->recipe.data.target = "1";
    compare(folder);
}

/* Writes a data-bin as fairseq-preprocess does, with ids of `width` bytes. */
static void write_databin(const data_folder *folder, const char *language, unsigned char type,
                          int width, const int32_t *ids, const int32_t *lengths, int64_t sentences)
{
    static const char magic[9] = "MMIDIDX";
    uint64_t version = 1, count = (uint64_t)sentences, begin = 0;
    dt_strbuf bin, idx;
    char name[64];

    dt_strbuf_init(&bin);
    dt_strbuf_init(&idx);
    dt_strbuf_add(&idx, magic, sizeof(magic));
    dt_strbuf_add(&idx, &version, 8);
    dt_strbuf_add(&idx, &type, 1);
    dt_strbuf_add(&idx, &count, 8);
    dt_strbuf_add(&idx, lengths, (size_t)sentences * 4);
    for (int64_t i = 0, at = 0; i < sentences; i++) {
        dt_strbuf_add(&idx, &begin, 8);
        begin += (uint64_t)(lengths[i] * width);
        for (int32_t t = 0; t < lengths[i]; t++, at++) {
            int64_t id = ids[at];

            dt_strbuf_add(&bin, &id, (size_t)width);
        }
    }
    snprintf(name, sizeof(name), "train.de-en.%s.bin", language);
    data_write(folder, name, bin.data, bin.length);
    snprintf(name, sizeof(name), "train.de-en.%s.idx", language);
    data_write(folder, name, idx.data, idx.length);
    dt_strbuf_release(&bin);
    dt_strbuf_release(&idx);
}

static const int32_t source_lengths[] = {3, 3, 4}, target_lengths[] = {3, 3, 4};

static void test_a_data_bin_is_read_in_every_width_and_direction(void **state)
{
    static const struct {
        unsigned char type;
        int width;
    } types[] = {{1, 1}, {8, 2}, {4, 4}, {5, 8}};
    data_folder *folder = *state;

    folder->recipe.data.tokenizer = ""; /* the data-bin includes its dictionaries */
    data_train(folder, "train");
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        write_databin(folder, "de", types[i].type, types[i].width, source_ids, source_lengths, 3);
        write_databin(folder, "en", types[i].type, types[i].width, target_ids, target_lengths, 3);
        compare(folder);
    }
    write_databin(folder, "de", 8, 2, target_ids, target_lengths, 3);
    write_databin(folder, "en", 8, 2, source_ids, source_lengths, 3);
    data_write_text(folder, "dict.en.txt", "das 9\nhaus 5\nein 4\nbaum 2\n");
    data_write_text(folder, "dict.de.txt", "the 9\na 5\nhouse 4\ntree 2\n");
    folder->recipe.data.source = "en"; /* the other direction */
    folder->recipe.data.target = "de";
    compare(folder);
}

static void test_codes_cut_words_before_the_dictionary(void **state)
{
    data_folder *folder = *state;
    dt_error err = DT_ERROR_INIT;
    dt_sentences sentences;
    dt_prepared made;
    dt_recipe here;
    int32_t ids[8];

    data_write_text(folder, "codes", "#version: 0.2\nh a\nu s</w>\n");
    data_write_text(folder, "dict.txt", "ha@@ 9\nus 5\nx 1\n");
    data_write_text(folder, "train.de", "haus x\n");
    data_write_text(folder, "train.en", "x\n");
    folder->recipe.data.tokenizer = dt_arena_printf(&folder->names, "%s/dict.txt", folder->path);
    folder->recipe.data.codes = dt_arena_printf(&folder->names, "%s/codes", folder->path);
    data_train(folder, "train");
    if (prepare(folder, &here, &made, &err) != DT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(dt_sentences_open(&sentences, here.data.train.items[0], NULL), DT_OK);
    assert_int_equal(dt_sentence_length(&sentences, DT_SOURCE, 0), 4);
    assert_int_equal(dt_sentence_read(ids, &sentences, DT_SOURCE, 0, 7, NULL), DT_OK);
    assert_memory_equal(ids, ((int32_t[]){4, 5, 6, 2}), 4 * sizeof(*ids));
    dt_sentences_close(&sentences);
}

static void refuse(data_folder *folder, const char *word, const char *second)
{
    dt_error err = DT_ERROR_INIT;
    dt_prepared made;
    dt_recipe here;

    assert_int_equal(prepare(folder, &here, &made, &err), DT_ERR_RECIPE);
    if (strstr(err.message, word) == NULL || strstr(err.message, second) == NULL)
        fail_msg("no '%s' or '%s' in: %s", word, second, err.message);
}

static void test_files_of_different_length_are_refused_with_their_numbers(void **state)
{
    data_folder *folder = *state;

    data_write_text(folder, "train.de", german);
    data_write_text(folder, "train.en", "the house\na tree\n");
    data_train(folder, "train");
    refuse(folder, "train.de' has 3 lines", "train.en' 2");
}

static void test_broken_text_is_named_by_file_and_line(void **state)
{
    data_folder *folder = *state;

    data_write_text(folder, "train.de", "das haus\nein baum\ndas haus\n");
    data_write_text(folder, "train.en", "the house\na tr\xe4 ee\nthe house\n");
    data_train(folder, "train");
    refuse(folder, "train.en:2: the target: byte 4", "is not UTF-8 (0xe4)");
    data_write_text(folder, "other.jsonl",
                    "{\"de\": \"das\", \"en\": \"the\"}\n{\"de\": \"\xff\"}\n");
    folder->recipe.data.train.count = 0;
    data_train(folder, "other.jsonl");
    refuse(folder, "other.jsonl:2: byte 8", "not UTF-8 (0xff)");
}

static char told[512];

static void remember(const char *text)
{
    snprintf(told, sizeof(told), "%s", text);
}

static void test_few_empty_lines_are_left_out_and_many_refused(void **state)
{
    data_folder *folder = *state;
    dt_error err = DT_ERROR_INIT;
    dt_prepared made;
    dt_recipe here;
    dt_strbuf de, en;

    dt_strbuf_init(&de);
    dt_strbuf_init(&en);
    for (int i = 1; i <= 40; i++) {
        dt_strbuf_add_str(&de, i == 3 ? " \n" : "das haus\n");
        dt_strbuf_add_str(&en, i == 8 ? "\n" : "the house\n");
    }
    data_write(folder, "train.de", de.data, de.length);
    data_write(folder, "train.en", en.data, en.length);
    data_train(folder, "train");
    here = folder->recipe;
    if (dt_prepare_recipe(&here, true, remember, &made, NULL, &folder->names, &err) != DT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(made.facts.documents, 38);
    assert_int_equal(made.facts.broken, 2);
    assert_non_null(strstr(told, "left out 2 pairs with an empty or missing side: "));
    assert_non_null(strstr(told, "train.de:3 (it is empty), "));
    assert_non_null(strstr(told, "train.en:8 (it is empty)"));
    dt_strbuf_reset(&de);
    for (int i = 1; i <= 40; i++)
        dt_strbuf_add_str(&de, i <= 11 ? "\n" : "das haus\n");
    data_write(folder, "train.de", de.data, de.length);
    refuse(folder, "11 of 40 pairs have an empty or missing side", "train.de:1 (it is empty)");
    here = folder->recipe;
    here.data.empty = DT_EMPTY_DROP;
    if (dt_prepare_recipe(&here, true, remember, &made, NULL, &folder->names, &err) != DT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(made.facts.documents, 29);
    assert_int_equal(made.facts.broken, 11);
    refuse(folder, "11 of 40 pairs have an empty or missing side", "set data.empty: drop");
    dt_strbuf_release(&de);
    dt_strbuf_release(&en);
}

static void test_lines_without_the_keys_are_named(void **state)
{
    data_folder *folder = *state;
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (int i = 0; i < 12; i++)
        dt_strbuf_add_str(&text,
                          i % 2 == 0 ? "{\"de\": \"das\"}\n" : "{\"de\": 1, \"en\": \"a\"}\n");
    data_write(folder, "train.jsonl", text.data, text.length);
    data_train(folder, "train.jsonl");
    refuse(folder, "train.jsonl:1 (a key is missing)", "train.jsonl:2 (a value is not a string)");
    data_write_text(folder, "train.tsv", "fr\ten\nla\tthe\n");
    folder->recipe.data.train.count = 0;
    data_train(folder, "train.tsv");
    refuse(folder, "train.tsv' has no column 'de'", "data.source and data.target");
    dt_strbuf_release(&text);
}

static void test_missing_files_are_reported_with_the_searched_names(void **state)
{
    data_folder *folder = *state;

    data_train(folder, "train");
    refuse(folder, "neither '", "train.de' with '");
    data_write_text(folder, "train.de", german);
    refuse(folder, "data.train: '", "train.en' does not exist");
    data_write_text(folder, "train.en", english);
    folder->recipe.data.tokenizer = "";
    folder->recipe.data.source = "nl";
    refuse(folder, "need data.tokenizer", "dict.nl.txt");
    folder->recipe.data.tokenizer = "byte";
    refuse(folder, "unsupported data.tokenizer 'byte'", "dictionary");
    folder->recipe.data.source = "de";
    folder->recipe.data.target = "";
    folder->recipe.data.tokenizer = dt_arena_printf(&folder->names, "%s/dict.de.txt", folder->path);
    refuse(folder, "data.target", "is not set");
    folder->recipe.data.target = "en";
    data_write_text(folder, "dict.de.txt", "das\n");
    refuse(folder, "data.tokenizer: '", "dict.de.txt', line 1");
}

static void test_data_bins_that_do_not_fit_are_refused(void **state)
{
    data_folder *folder = *state;

    data_train(folder, "train");
    write_databin(folder, "de", 8, 2, source_ids, source_lengths, 3);
    write_databin(folder, "en", 8, 2, target_ids, target_lengths, 2);
    refuse(folder, "train.de-en.de.bin' has 3 sentences", "train.de-en.en.bin' has 2");
    write_databin(folder, "en", 4, 4, target_ids, target_lengths, 3);
    refuse(folder, "has 2 bytes per id", "train.de-en.en.bin' has 4");
    write_databin(folder, "en", 8, 2, target_ids, target_lengths, 3);
    data_write_text(folder, "dict.en.txt", "the 9\na 5\n");
    refuse(folder, "sentence 1 of 'en' has the id 6", "the dictionary has 6 words");
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, data_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_two_text_files_are_read_line_by_line),
        WITH_FOLDER(test_objects_a_line_are_read_by_key),
        WITH_FOLDER(test_columns_are_found_by_name_or_number),
        WITH_FOLDER(test_a_data_bin_is_read_in_every_width_and_direction),
        WITH_FOLDER(test_codes_cut_words_before_the_dictionary),
        WITH_FOLDER(test_files_of_different_length_are_refused_with_their_numbers),
        WITH_FOLDER(test_broken_text_is_named_by_file_and_line),
        WITH_FOLDER(test_few_empty_lines_are_left_out_and_many_refused),
        WITH_FOLDER(test_lines_without_the_keys_are_named),
        WITH_FOLDER(test_missing_files_are_reported_with_the_searched_names),
        WITH_FOLDER(test_data_bins_that_do_not_fit_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
