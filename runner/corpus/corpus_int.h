/* corpus_int: what the files of this folder and their tests share: lines of JSON, counted words, the
 * training of a byte pair encoding, parts of a corpus, threads, sentence pairs. */
#ifndef DT_RUNNER_CORPUS_CORPUS_INT_H
#define DT_RUNNER_CORPUS_CORPUS_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "engine/data/data.h"
#include "engine/data/files.h"
#include "engine/data/sentences.h"
#include "engine/tokens/bpe.h"
#include "engine/tokens/split.h"
#include "recipes/fields/recipe.h"
#include "runner/corpus/chats.h"
#include "runner/corpus/corpus.h"

/* json_line: reads one string of a JSON object without building the object, because lines of JSON are read by the
 * gigabyte.
 *
 * Decides only clear cases: an object that has the key once, with a string. All other lines, faulty ones included,
 * are left to jansson, which names the fault. A line that is decided here gives the same text there.
 */

/* Replaces *out with the string of `key` in the object at `line`. Returns false if the line is not a clear case; *out
 * is then unspecified. */
bool dt_json_line_text(dt_strbuf *out, const char *line, size_t length, const char *key);

/* words: counts the words of a corpus, as a tokenizer splits text.
 *
 * A table with open addressing, at most half full. A word longer than DT_WORD_MAX, as in text
 * without spaces, is counted in pieces.
 * Memory   48 bytes for each different word, and its bytes
 * Threads  one per table
 */

#define DT_WORD_MAX ((size_t)1 << 16) /* bytes */

typedef struct dt_word {
    uint64_t start; /* in words->bytes */
    uint32_t length, hash;
    int64_t count; /* 0: the slot is empty */
} dt_word;

typedef struct dt_words {
    dt_strbuf bytes;
    dt_word *slots;
    uint64_t used, mask;
} dt_words;

void dt_words_init(dt_words *out);
void dt_words_release(dt_words *words); /* accepts a zeroed struct */

/* Adds all words of a text. DT_ERR_USAGE, with the byte, if it is not UTF-8. */
dt_status dt_words_add_text(dt_words *words, const dt_split *split, const char *text, size_t length,
                            dt_error *err);
/* Adds all words of another table. */
void dt_words_add_all(dt_words *words, const dt_words *other);

static inline const char *dt_word_text(const dt_words *words, const dt_word *word)
{
    return words->bytes.data + word->start;
}

/* learn: trains a byte pair encoding (Sennrich, Haddow and Birch, "Neural machine translation of rare words with
 * subword units", 2016; on bytes as in GPT-2).
 *
 * Repeatedly merges the most frequent pair of neighbours within words, or of equally frequent pairs the one with the
 * lowest first id, then second id, until there are `vocab` tokens or no pair occurs `least_count` times. The merges
 * equal those of the trainer of Hugging Face's `tokenizers` for the same words, alphabet and special tokens, in any
 * order of the words.
 *
 * Time     a merge costs in proportion to the words that it changes: each pair has a list of its words, and the counts
 *          in a heap of pairs are updated only when they reach the top
 * Memory   about 12 bytes per byte of the different words
 */

typedef struct dt_learn_options {
    int64_t vocab; /* number of tokens, including the special ones and the 256 bytes */
    int64_t least_count;
    void (*tell)(const char *text); /* progress, a line at a time; may be NULL */
} dt_learn_options;

/* Adds merges to a begun draft. The caller frees *merges, to which the draft points. */
dt_status dt_learn_merges(dt_bpe_draft *draft, dt_bpe_merge **merges, const dt_words *words,
                          const dt_learn_options *options, dt_error *err);

/* parts: divides a corpus into parts that one thread reads at a time, and writes files of tokens.
 *
 * The division depends only on the files and the tokenizer.
 */

#define DT_CORPUS_HEADER_BYTES 1024 /* engine/data/data_int.h */

typedef struct dt_corpus_file {
    const char *path;
    dt_corpus_kind kind;
    dt_mapping text;
    int64_t column; /* of the text, in a .csv */
} dt_corpus_file;

typedef struct dt_corpus_part {
    const dt_corpus_file *file;
    size_t start, end;
    /* For text: the part has the beginning of its file, or the end. */
    bool begins_document, ends_document;
} dt_corpus_part;

typedef struct dt_corpus_parts {
    dt_corpus_file *files;
    int64_t file_count;
    dt_corpus_part *items;
    int64_t count, capacity;
} dt_corpus_parts;

/* Returns where the file's documents begin: behind a byte order mark, and behind the names of a .csv's columns. */
size_t dt_corpus_file_start(const dt_corpus_file *file);
/* Maps the files and divides them. dt_corpus_parts_release accepts a zeroed struct. */
dt_status dt_corpus_parts_open(dt_corpus_parts *out, const dt_data_files *files, const char *field,
                               const dt_bpe *bpe, dt_error *err);
void dt_corpus_parts_release(dt_corpus_parts *parts);

/* Passes the documents of a part to `add`. DT_ERR_RECIPE naming file and byte, also if `add` returns DT_ERR_USAGE. */
dt_status dt_corpus_part_read(dt_documents *documents, const dt_corpus_part *part,
                              const char *field, dt_document_fn *add, void *context, dt_error *err);
/* Appends the tokens of a part: for each document its own tokens, with those that the
 * post-processor puts before and after a text, and the end-of-text token unless the document ends
 * with it. DT_ERR_RECIPE naming file and byte. */
dt_status dt_corpus_part_encode(dt_ids *ids, dt_documents *documents, const dt_corpus_part *part,
                                const char *field, dt_bpe_encoder *encoder, const dt_bpe *bpe,
                                dt_error *err);

/* Does the same for about the first `bytes` bytes of a file. *whole: the file has no more. */
dt_status dt_corpus_head_encode(dt_ids *ids, dt_documents *documents, bool *whole, const char *path,
                                size_t bytes, const char *field, dt_bpe_encoder *encoder,
                                const dt_bpe *bpe, dt_error *err);

/* Writes a file in llm.c's format atomically. */
dt_status dt_corpus_tokens_write(const char *path, const dt_ids *ids, bool wide, dt_error *err);

/* threads: processes the parts of a corpus with several threads, each part by one of them. */

typedef struct dt_corpus_job {
    const char *doing; /* "making tokens", for progress messages */
    const dt_corpus_parts *parts;
    int threads;                    /* 0: one per processor */
    void (*tell)(const char *text); /* progress, a line at a time; may be NULL */
    void *context;
    /* Makes the state of a thread, which is closed also if `open` failed. */
    dt_status (*open)(void **worker, void *context, dt_error *err);
    dt_status (*part)(void *worker, void *context, int64_t index, dt_error *err);
    /* Called by one thread at a time, so that it can add to shared results. */
    dt_status (*close)(void *worker, void *context, dt_error *err);
} dt_corpus_job;

/* Runs the job. Returns the first error of a thread, which ends the others. */
dt_status dt_corpus_run(const dt_corpus_job *job, dt_error *err);

/* work: tokenizes the parts of a corpus with several threads, into one folder. */

#define DT_CORPUS_FACTS     "facts.json"
#define DT_CORPUS_FACTS_MAX ((size_t)4 << 20)
/* Key of the facts: a sentence about texts that were left out, which every command that opens the tokens reports. */
#define DT_CORPUS_LEFT_OUT "left_out"

/* token_files.c: the folder CACHE/tokens/KEY, which `work` completes if needed. */
typedef struct dt_prepared_job {
    char key[33]; /* hex */
    void *context;
    dt_status (*work)(void *context, const char *folder, dt_error *err);
    void (*tell)(const char *text); /* may be NULL */
} dt_prepared_job;

dt_status dt_prepared_folder(dt_prepared *out, const dt_prepared_job *job, bool make_it,
                             dt_arena *arena, dt_error *err);

/* chat_tally.c: what is counted of conversations; facts have each count under its name. */
typedef struct dt_chat_tally {
    int64_t conversations, tokens, trained, bytes, field_bytes, dropped_bytes;
    int64_t forms[3]; /* by dt_chat_form */
} dt_chat_tally;

void dt_chat_tally_to_json(json_t *facts, const dt_chat_tally *tally);
/* Adds the counts of facts, which `path` names in messages. */
dt_status dt_chat_tally_add(dt_chat_tally *tally, const json_t *facts, const char *path,
                            dt_error *err);
dt_chat_counts dt_chat_counts_of(const dt_chat_tally *tally);

/* pair_prepared.c: dt_prepare_recipe for sentence pairs, with their tokenizer. */
dt_status dt_prepare_pairs(dt_recipe *recipe, const dt_tokenizer *tokenizer, bool make_it,
                           void (*tell)(const char *text), dt_prepared made[2], dt_arena *arena,
                           dt_error *err);

/* chats.c: calls `each` for the conversations between two bytes of a file, which begin and end lines; `arena` is reset
 * before each. The numbers of their lines count from `start`. */
dt_status dt_chats_part_read(const dt_corpus_file *file, size_t start, size_t end,
                             dt_chat_encoder *encoder, dt_arena *arena, bool pairs,
                             dt_chats_line_fn *each, void *context, dt_error *err);

/* chat_prepared.c: dt_prepare_recipe for conversations. */
dt_status dt_prepare_chats(dt_recipe *recipe, const dt_tokenizer *tokenizer, bool make_it,
                           void (*tell)(const char *text), dt_prepared made[2], dt_arena *arena,
                           dt_error *err);

/* Sentence pairs: the steps from the files in a recipe to tokens. */

/* mixture: prepares training files, of each part of data.mixture on its own. */

/* Prepares own->data.train; `field` is for messages. */
typedef dt_status dt_prepare_list(dt_prepared *out, const dt_recipe *own, const char *field,
                                  void *context, dt_error *err);
/* Calls open_list for data.train, or for each part. *out: all files together, none if a part has none. *parts: the parts
 * with the files that were made of them. */
dt_status dt_prepare_parts(dt_prepared *out, dt_map_list *parts, const dt_recipe *recipe,
                           dt_prepare_list *open_list, void *context, dt_arena *arena,
                           dt_error *err);
/* Puts files of this kind into the recipe, if all were made. made: of training and of validation. */
void dt_prepared_take(dt_recipe *recipe, const dt_prepared made[2], const dt_map_list *parts,
                      dt_tokens_kind kind);

/* pair_files: finds the files of sentence pairs that an entry of data.train or data.validation
 * refers to.
 *
 * Languages SOURCE and TARGET are data.source and data.target, "de" and "en" for example. Entries:
 *   NAME.jsonl, NAME.json   one object per line, with the keys "de" and "en"
 *   NAME.csv, NAME.tsv      with columns of those names in the first line; numbers select columns
 *                           of a file whose first line has no names. A .tsv has no quotes
 *   NAME                    two text files, NAME.de and NAME.en; line n of one is the translation
 *                           of line n of the other
 *   NAME                    the output of fairseq-preprocess: NAME.de-en.de.bin, NAME.de-en.en.bin
 *                           and their .idx (recipes/foreign/databin.h), or NAME.en-de.*
 * The first two can be patterns.
 *
 * Errors  DT_ERR_RECIPE naming field and file, and the expected files
 */

typedef enum dt_pair_format {
    DT_PAIR_TEXT,
    DT_PAIR_JSONL,
    DT_PAIR_CSV,
    DT_PAIR_TSV,
    DT_PAIR_DATABIN
} dt_pair_format;

typedef struct dt_pair_file {
    dt_pair_format format;
    const char *paths[DT_LANGUAGES];   /* the second is NULL if one file has both languages */
    const char *indexes[DT_LANGUAGES]; /* data-bin: the .idx files */
    int width_bytes;                   /* data-bin: bytes per id */
} dt_pair_file;

typedef struct dt_pair_files {
    dt_pair_file *items; /* in the arena */
    int64_t count;
} dt_pair_files;

/* names: the two languages. `field` is "data.train" or "data.validation", for messages. */
dt_status dt_pair_files_find(dt_pair_files *out, const dt_string_list *entries,
                             const char *const names[DT_LANGUAGES], const char *field,
                             dt_arena *arena, dt_error *err);

/* pair_reader: reads the sentence pairs of files (above), one after another.
 *
 * A line with a missing or empty side is counted as broken and left out.
 * Errors  DT_ERR_RECIPE with file and line: text that is not UTF-8, files of different length, a .csv
 *         or .tsv without the columns; what `add` returns
 */

/* A pair as text, or as ids without the end token. */
typedef struct dt_pair_text {
    const char *text[DT_LANGUAGES];
    size_t length[DT_LANGUAGES];
} dt_pair_text;

typedef struct dt_pair_sink {
    void *context;
    /* DT_ERR_USAGE: the text of *side is invalid. *empty: the pair was left out, because *side has no word. */
    dt_status (*add_text)(void *context, const dt_pair_text *pair, dt_language *side, bool *empty,
                          dt_error *err);
    dt_status (*add_ids)(void *context, int32_t *const ids[DT_LANGUAGES],
                         const int64_t count[DT_LANGUAGES], bool *empty, dt_error *err);
    int64_t most; /* lines to read, over all files; 0: all */
} dt_pair_sink;

#define DT_PAIRS_NAMED 3

typedef struct dt_pair_tally {
    int64_t lines, pairs, bytes, broken;
    dt_strbuf broken_words; /* the first broken lines: "train.de:3 (it is empty), train.en:8" */
} dt_pair_tally;

/* Returns whether the sink wants no more lines. */
static inline bool dt_pair_sink_is_full(const dt_pair_sink *sink, const dt_pair_tally *read)
{
    return sink->most > 0 && read->lines >= sink->most;
}

/* Reads the pairs of a file into the sink, and adds to the counts of *out, whose broken_words must be initialized. */
dt_status dt_pairs_read(dt_pair_tally *out, const dt_pair_file *file,
                        const char *const names[DT_LANGUAGES], const dt_pair_sink *sink,
                        dt_error *err);

/* pair_tokenizer: combines the tokenizers of both languages in a recipe into one (engine/data/sides.h).
 *
 * data.tokenizer  dict.txt                          of both languages
 *                 tokenizer.json                    of both languages
 *                 a folder with dict.SOURCE.txt and dict.TARGET.txt, or with one of the above
 *                 translation.json                  of a checkpoint
 *                 not set                           the folder of a fairseq data-bin
 * data.codes      codes of subword-nmt, before a dictionary
 *
 * Errors  DT_ERR_RECIPE naming field and file
 */

dt_status dt_pair_tokenizer_make(dt_tokenizer **out, const dt_recipe *recipe, dt_arena *arena,
                                 dt_error *err);

#endif
