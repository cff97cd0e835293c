/* fairseq: the files of fairseq's words: subword-nmt's codes (codes.c), which split words into pieces, and
 * dict.txt (dictionary.c), which has their ids. */
#ifndef DT_ENGINE_TOKENS_FAIRSEQ_H
#define DT_ENGINE_TOKENS_FAIRSEQ_H

#include "engine/tokens/bpe.h"
#include "engine/tokens/vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

/* codes: applies subword-nmt's byte pair encoding: splits the words of a line into pieces, with "@@ " between the
 * pieces of one word.
 *
 *   file    "#version: 0.2", then one merge per line, "a b", the earliest first; without the first line the version
 *           is 0.1. fastBPE's "a b count" is also read, as version 0.2
 *   0.2     "</w>" is a part of a word's last character; 0.1: a character of its own
 *   merge   the pair of neighbours in a word that is earliest in the file, at all its places from left to right;
 *           repeated until no pair is in the file
 *
 * Source     subword-nmt/apply_bpe.py; no glossaries, no dropout
 * Threads    read-only after parsing
 * Errors     DT_ERR_CORRUPT naming file and line; DT_ERR_NOMEM
 */

typedef struct dt_codes {
    dt_vocab symbols; /* both inputs and the result of every merge */
    dt_pairs merges;
    bool end_apart; /* version 0.1: "</w>" is a character of its own */
} dt_codes;

/* Parses a file. `name` is its name, for messages. Release with dt_codes_release, which accepts a zeroed one. */
dt_status dt_codes_parse(dt_codes *out, const char *bytes, size_t length, const char *name,
                         dt_error *err);
void dt_codes_release(dt_codes *codes);

/* Appends the pieces of the words of a line (UTF-8), which is split at spaces. */
dt_status dt_codes_apply(dt_strbuf *out, const dt_codes *codes, const char *text, size_t length,
                         dt_error *err);

/* dictionary: reads fairseq's dict.txt, and encodes and decodes lines of text with it.
 *
 *   dict.txt   one "word count" per line; "word count #fairseq:overwrite" replaces an earlier line of the word. Ids
 *              follow the order of the lines, after four that every dictionary has: 0 <s>, 1 <pad>, 2 </s>,
 *              3 <unk>
 *   text       split at white space as by Python's str.split(); a word without a line is <unk>
 *
 * Source     fairseq/data/dictionary.py, fairseq/tokenizer.py
 * Threads    read-only after parsing
 * Errors     DT_ERR_CORRUPT naming file and line: no count, a word twice, not UTF-8; or an empty file
 */

enum {
    DT_DICTIONARY_BEGIN,
    DT_DICTIONARY_PAD,
    DT_DICTIONARY_END,
    DT_DICTIONARY_UNKNOWN,
    DT_DICTIONARY_SPECIALS
};

/* Mark between the pieces of a word, as subword-nmt writes it: "the@@ ory". */
#define DT_WORD_CONTINUES "@@"

typedef struct dt_dictionary {
    dt_vocab words;
} dt_dictionary;

/* Parses a dictionary. `name` is the file's name, for messages. Release with dt_dictionary_release,
 * which accepts a zeroed one. */
dt_status dt_dictionary_parse(dt_dictionary *out, const char *bytes, size_t length,
                              const char *name, dt_error *err);
void dt_dictionary_release(dt_dictionary *dictionary);

int64_t dt_dictionary_size(const dt_dictionary *dictionary);
/* Appends the ids of the words of a line (UTF-8); nothing for a line of white space. */
dt_status dt_dictionary_encode(dt_ids *out, const dt_dictionary *dictionary, const char *text,
                               size_t length, dt_error *err);
/* Appends a word and a space, or the start of a split word ("the@@") without mark and space;
 * nothing for <s>, <pad> and </s>. */
void dt_dictionary_decode(dt_strbuf *out, const dt_dictionary *dictionary, int32_t id);

#ifdef __cplusplus
}
#endif

#endif
