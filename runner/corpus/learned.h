/* learned: trains a tokenizer on text files: byte-level as in GPT-2, as a tokenizer.json. */
#ifndef DT_RUNNER_CORPUS_LEARNED_H
#define DT_RUNNER_CORPUS_LEARNED_H

#include "base/json.h"
#include "engine/data/files.h"
#include "engine/tokens/split.h"

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

/* Errors as in prepared.h. */
dt_status dt_learn_tokenizer(dt_learned *out, const dt_data_files *files,
                             const dt_learned_options *options, dt_error *err);

#endif
