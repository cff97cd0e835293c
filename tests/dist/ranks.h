/* ranks: starts the ranks of a test and replaces their agent.
 *
 * Purpose    every rank gets a channel (DTRUN_CHANNEL) and its place (RANK, WORLD_SIZE); its
 *            rendezvous are answered; every other line that it sends goes to on_line. Unlike the
 *            agent, it does not end the survivors of a dead rank, because the tests check what they
 *            do.
 * Threads    the caller has none when it forks
 */
#ifndef DT_TESTS_RANKS_H
#define DT_TESTS_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RANKS_MAX 8

typedef struct ranks {
    int world_size;
    double timeout_seconds; /* after that, all are killed */
    /* Called in the child; its result is the exit code. */
    int (*body)(int rank, void *self);
    /* A line without its line break. MAY be NULL. */
    void (*on_line)(struct ranks *all, int rank, const char *line);
    void *self;

    /* Written by ranks_run. */
    pid_t pid[RANKS_MAX];
    int code[RANKS_MAX];             /* exit code, or 128 + signal */
    double ended_seconds[RANKS_MAX]; /* since the start */
    bool timed_out;
} ranks;

/* Returns the largest exit code, or 124 if the time limit was reached. */
int ranks_run(ranks *all);

#endif
