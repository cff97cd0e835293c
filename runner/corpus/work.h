/* work: tokenizes the parts of a corpus with several threads, into one folder. */
#ifndef DT_RUNNER_CORPUS_WORK_H
#define DT_RUNNER_CORPUS_WORK_H

#include "runner/corpus/parts.h"
#include "runner/corpus/prepared.h"

#define DT_CORPUS_FACTS     "facts.json"
#define DT_CORPUS_FACTS_MAX ((size_t)4 << 20)
/* Key of the facts: a sentence about texts that were left out, which every command that opens the tokens reports. */
#define DT_CORPUS_LEFT_OUT "left_out"

/* Writes the missing parts of the folder, then its facts. Errors as in prepared.h. */
dt_status dt_corpus_work(const char *folder, const dt_data_files *files,
                         const dt_prepare_options *options, dt_error *err);

/* prepared.c: the folder CACHE/tokens/KEY, which `work` completes if needed. */
typedef struct dt_prepared_job {
    char key[33]; /* hex */
    void *context;
    dt_status (*work)(void *context, const char *folder, dt_error *err);
    void (*tell)(const char *text); /* may be NULL */
} dt_prepared_job;

dt_status dt_prepared_folder(dt_prepared *out, const dt_prepared_job *job, bool make_it,
                             dt_arena *arena, dt_error *err);

/* pair_prepared.c: dt_prepare_recipe for sentence pairs, with their tokenizer. */
dt_status dt_prepare_pairs(dt_recipe *recipe, const dt_tokenizer *tokenizer, bool make_it,
                           void (*tell)(const char *text), dt_prepared made[2], dt_arena *arena,
                           dt_error *err);

#endif
