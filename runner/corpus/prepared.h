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
#ifndef DT_RUNNER_CORPUS_PREPARED_H
#define DT_RUNNER_CORPUS_PREPARED_H

#include "base/arena.h"
#include "engine/data/data.h"

typedef struct dt_prepared_facts {
    int64_t documents, tokens, bytes, parts, broken; /* documents: or sentence pairs */
    int64_t unknown; /* for pairs: tokens that are in no dictionary */
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

#endif
