/* threads: processes the parts of a corpus with several threads, each part by one of them. */
#ifndef DT_RUNNER_CORPUS_THREADS_H
#define DT_RUNNER_CORPUS_THREADS_H

#include "runner/corpus/parts.h"

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

#endif
