/* ranks: starts the ranks of a test and stands in for their agent.
 *
 * Purpose    every rank gets a channel (DTRUN_CHANNEL) and its place (RANK, WORLD_SIZE); its
 *            rendezvous are answered; every other line that it sends goes to on_line. Unlike the
 *            agent, it lets the survivors of a dead rank alone: what they do is being tested.
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
    /* In the child; what it returns is the exit code. */
    int (*body)(int rank, void *self);
    /* A line without its line break. MAY be NULL. */
    void (*on_line)(struct ranks *all, int rank, const char *line);
    void *self;

    /* Set by ranks_run. */
    pid_t pid[RANKS_MAX];
    int code[RANKS_MAX];             /* exit code, or 128 + signal */
    double ended_seconds[RANKS_MAX]; /* after the start */
    bool timed_out;
} ranks;

/* Returns the largest exit code, 124 where the time was over. */
int ranks_run(ranks *all);

#endif
