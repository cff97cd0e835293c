/* work: the parts of a corpus made into token files by threads, into one folder. */
#ifndef DT_RUNNER_CORPUS_WORK_H
#define DT_RUNNER_CORPUS_WORK_H

#include "runner/corpus/parts.h"
#include "runner/corpus/prepared.h"

#define DT_CORPUS_FACTS     "facts.json"
#define DT_CORPUS_FACTS_MAX ((size_t)4 << 20)

/* What is missing in the folder, and its facts at the end. prepared.h's errors. */
dt_status dt_corpus_work(const char *folder, const dt_data_files *files,
                         const dt_prepare_options *options, dt_error *err);

#endif
