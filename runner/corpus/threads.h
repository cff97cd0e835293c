/* threads: the parts of a corpus worked on by threads, each part by one of them. */
#ifndef DT_RUNNER_CORPUS_THREADS_H
#define DT_RUNNER_CORPUS_THREADS_H

#include "runner/corpus/parts.h"

typedef struct dt_corpus_job {
    const char *doing; /* "making tokens", for progress */
    const dt_corpus_parts *parts;
    int threads;                    /* 0: one a processor */
    void (*tell)(const char *text); /* progress, a line at a time; may be NULL */
    void *context;
    /* What a thread has of its own; it is closed, too, where that failed. */
    dt_status (*open)(void **worker, void *context, dt_error *err);
    dt_status (*part)(void *worker, void *context, int64_t index, dt_error *err);
    /* One thread at a time is in here: it may add to what all share. */
    dt_status (*close)(void *worker, void *context, dt_error *err);
} dt_corpus_job;

/* The first error of a thread, at which the others end. */
dt_status dt_corpus_run(const dt_corpus_job *job, dt_error *err);

#endif
