/* corpus: reads the documents of text files, tokenizes them once into files of tokens in the cache, and
 * trains tokenizers on them. */
#ifndef DT_RUNNER_CORPUS_CORPUS_H
#define DT_RUNNER_CORPUS_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "engine/data/data.h"
#include "engine/data/files.h"
#include "engine/tokens/split.h"
#include "recipes/plan/plan.h"

/* documents: reads the documents of a file, or of a part of a file that begins and ends between documents.
 *
 *   text    the file is one document; a part of it is a piece of the document
 *   jsonl   one document per line: the string of a key
 *   csv     one document per record: the field of a column, which the first record names
 *
 * A line or record without this text, or with an empty one, is counted as broken and left out.
 * Errors  those of `add`; DT_ERR_RECIPE: a .csv without the column
 */

typedef enum dt_corpus_kind { DT_CORPUS_TEXT, DT_CORPUS_JSONL, DT_CORPUS_CSV } dt_corpus_kind;

/* Returns the kind by the name's ending: .jsonl and .json, .csv; all others are text. */
dt_corpus_kind dt_corpus_kind_of(const char *path);

#define DT_BROKEN_NAMED 3

typedef struct dt_documents {
    int64_t documents, lines, bytes; /* bytes of text */
    int64_t broken;
    int64_t broken_lines[DT_BROKEN_NAMED]; /* the first ones, from 1, within the part */
    char broken_why[80];                   /* of the first */
} dt_documents;

/* More than one in a thousand, and more than 10. */
bool dt_documents_too_broken(int64_t broken, int64_t lines);

typedef dt_status dt_document_fn(void *context, const char *text, size_t length, dt_error *err);

/* Calls `add` for each document of `text`, and adds to the counts of *out. field: the key, for
 * jsonl. column: for csv, from 0. */
dt_status dt_documents_read(dt_documents *out, dt_corpus_kind kind, const char *text, size_t length,
                            const char *field, int64_t column, dt_document_fn *add, void *context,
                            dt_error *err);

/* Returns the bytes of the first record of a .csv, with its line break. */
size_t dt_csv_record(const char *text, size_t length);
/* Replaces *out with a field of the record at `text`, which has no line break; false: it has fewer fields. */
bool dt_csv_field(dt_strbuf *out, const char *text, size_t length, int64_t column);
/* Returns the column of this name in the record at `text`; -1: none. */
int64_t dt_csv_column(const char *text, size_t length, const char *name);

/* prepared: tokenizes text once, into token files in the cache of this machine.
 *
 *   CACHE/tokens/KEY/part-00000.bin ...   llm.c's format, in order; a document ends with the tokenizer's
 *                                         end-of-text token where it has one
 *   CACHE/tokens/KEY/all.pairs            of sentence pairs instead (engine/data/sentences.h)
 *   CACHE/tokens/KEY/facts.json           written last: the folder is complete
 *   CACHE/tokens/KEY.lock                 held by the process that writes the folder
 *   CACHE/tokens/tokenizers/DIGEST/NAME   a tokenizer's file
 *
 * KEY        a digest of the program's version, the field, the tokenizer's file, and the contents and kinds of
 *            the files in their order. The names of files and the number of threads are not part of it
 * Resumed    a part's facts (part-00000.json) are written after its tokens are on the disk, so that the next process
 *            after a killed one continues with the missing parts
 * Threads    one per processor; two commands that need the same folder wait for each other
 * Pairs      one thread, not resumable. More than 10 pairs, and more than one in a thousand, with an empty side are
 *            an error, unless data.empty is drop
 * Errors     DT_ERR_RECIPE: text that is not UTF-8 with file and byte, a .csv without the column,
 *            more broken lines than one in a thousand (and 10) with the first ones named;
 *            DT_ERR_IO: a full disk
 */

/* Of conversations. */
typedef struct dt_chat_counts {
    int64_t forms[3]; /* conversations of each dt_chat_form */
    int64_t trained;  /* tokens */
    int64_t field_bytes,
        dropped_bytes; /* of the assistants' fields; those that the template left out */
} dt_chat_counts;

typedef struct dt_prepared_facts {
    int64_t documents, tokens, bytes, parts, broken; /* documents: or sentence pairs */
    int64_t unknown; /* for pairs: tokens that are in no dictionary */
    dt_chat_counts chats;
} dt_prepared_facts;

typedef struct dt_prepared {
    dt_string_list files; /* the parts' files, absolute paths */
    dt_prepared_facts facts;
    const char *left_out; /* a sentence about texts that were left out; NULL: none */
    int64_t vocab;        /* of the tokenizer */
    const char *texts;    /* how documents become texts: ", each as '<s>' TEXT '</s>'", or "" */
    const char *warnings; /* about the tokenizer's files, one a line; "" or NULL: none */
    bool counted; /* without files: facts has the number of tokens, since the data are small */
    bool found;   /* it already existed */
    bool pairs;   /* sentence pairs */
    bool chats;   /* conversations */
    /* [2] Of conversations without files: what is known of the rows of those that were read, from the beginning, and of
     * those that data.split keeps for validation; NULL otherwise. facts are of the same conversations. */
    const dt_chat_facts *rows;
    const dt_part_facts *
        parts; /* of each part of a mixture, if `rows` is of all its conversations; NULL: not known */
    /* of conversations: ids of 'evaluate.samples', each as the message of a user; count 0: none */
    const dt_plan_prompt *prompts;
    int64_t prompt_count;
} dt_prepared;

typedef struct dt_prepare_options {
    const dt_tokenizer *tokenizer; /* kind "bpe" */
    const char *field;
    int threads;                    /* 0: one per processor */
    void (*tell)(const char *text); /* progress, a line at a time */
} dt_prepare_options;

/* Prepares the files of `patterns`. `name` is "data.train" or "data.validation", for messages. make
 * false: only finds existing files; if there are none, *out has none, and the beginning of the text is tokenized to
 * find what preparing would refuse. */
dt_status dt_prepared_open(dt_prepared *out, const dt_string_list *patterns, const char *name,
                           const dt_prepare_options *options, bool make, dt_arena *arena,
                           dt_error *err);

/* Appends a description: "4,500 documents of 1.2 MB, 300k tokens of 8000 (4.00 bytes a token)". */
void dt_prepared_describe(dt_strbuf *out, const dt_prepared *made);

/* Replaces text in the recipe with token files, and its tokenizer with the cached one, if data.tokenizer names a file;
 * replaces sentence pairs and their tokenizers if data.source names a language; leaves other recipes alone. train and
 * validation may be NULL. */
dt_status dt_prepare_recipe(dt_recipe *recipe, bool make, void (*tell)(const char *text),
                            dt_prepared *train, dt_prepared *validation, dt_arena *arena,
                            dt_error *err);

/* learned: trains a tokenizer on text files: byte-level as in GPT-2, as a tokenizer.json. */

typedef struct dt_learned_options {
    int64_t vocab;       /* requested number of tokens */
    int64_t least_count; /* rarer pairs are not merged */
    dt_split_kind split; /* GPT2, LLAMA3 or QWEN */
    const char *const *special;
    size_t special_count;
    const char *field; /* key of .jsonl and column of .csv */
    int threads;       /* 0: one per processor */
    void (*tell)(const char *text);
} dt_learned_options;

typedef struct dt_learned {
    json_t *tokenizer; /* owned by the caller */
    int64_t vocab;     /* less than requested if the text has no more frequent pairs */
    int64_t documents, bytes, broken, words; /* words: number of different words */
} dt_learned;

/* DT_ERR_RECIPE names the file, for example a .csv without the column. */
dt_status dt_learn_tokenizer(dt_learned *out, const dt_data_files *files,
                             const dt_learned_options *options, dt_error *err);

#endif
