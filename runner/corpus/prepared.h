/* prepared: text made into token files once, in the cache of this machine.
 *
 *   CACHE/tokens/KEY/part-00000.bin ...   llm.c's format, in order; a document ends with the tokenizer's
 *                                         end-of-text token where it has one
 *   CACHE/tokens/KEY/all.pairs            of sentence pairs instead (engine/data/sentences.h)
 *   CACHE/tokens/KEY/facts.json           written last: the folder is whole
 *   CACHE/tokens/KEY.lock                 held by who makes it
 *   CACHE/tokens/tokenizers/DIGEST/NAME   a tokenizer's file
 *
 * KEY        a digest of the program's version, the field, the tokenizer's file, and the contents and kinds of
 *            the files in their order. The names of files and the number of threads are not part of it
 * Resumed    a part's facts (part-00000.json) are written when its tokens are on the disk: who
 *            comes after one that was killed continues behind the whole parts
 * Threads    one a processor; two commands that want the same wait for each other
 * Pairs      one thread; nothing is kept of one that was killed. More than one pair in a thousand (and
 *            10) with an empty side is an error
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
    int64_t unknown;                                 /* of pairs: tokens that no dictionary has */
} dt_prepared_facts;

typedef struct dt_prepared {
    dt_string_list files; /* of the parts, absolute */
    dt_prepared_facts facts;
    const char *left_out; /* a sentence about texts that are not in it; NULL: all are */
    int64_t vocab;        /* of the tokenizer */
    const char *texts;    /* how documents become texts: ", each as '<s>' TEXT '</s>'", or "" */
    bool found;           /* it was there already */
    bool pairs;           /* of sentences */
} dt_prepared;

typedef struct dt_prepare_options {
    const dt_tokenizer *tokenizer; /* kind "bpe" */
    const char *field;
    int threads;                    /* 0: one a processor */
    void (*tell)(const char *text); /* progress, a line at a time */
} dt_prepare_options;

/* `name` is "data.train" or "data.validation", for messages. make false: only what is there already is
 * found; then *out has no files where it is not. */
dt_status dt_prepared_open(dt_prepared *out, const dt_string_list *patterns, const char *name,
                           const dt_prepare_options *options, bool make, dt_arena *arena,
                           dt_error *err);

/* Appends what they are, for people: "4,500 documents of 1.2 MB, 300k tokens of 8000 (4.00 bytes a token)". */
void dt_prepared_describe(dt_strbuf *out, const dt_prepared *made);

/* The recipe with its text as token files and its tokenizer from the cache, where data.tokenizer names
 * a file, and with its sentence pairs and what tells of their tokenizers, where data.source names a
 * language; else as it is. train and validation may be NULL. */
dt_status dt_prepare_recipe(dt_recipe *recipe, bool make, void (*tell)(const char *text),
                            dt_prepared *train, dt_prepared *validation, dt_arena *arena,
                            dt_error *err);

#endif
