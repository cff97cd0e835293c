/* spawn: runs the ranks of a plan without an agent.
 *
 *   spawn --ranks W --events PREFIX [--signal RANK:SIGNAL:AFTER[:DELAY]] [--timeout S]
 *         [--per-node N] -- PROGRAM ARGS...
 *
 * The lines of rank r go to PREFIX.r, its stderr to PREFIX.r.err, with its exit code and the
 * seconds that it lived on the last line of PREFIX.exits ("RANK CODE SECONDS"). SIGNAL goes to
 * RANK (-1: all) DELAY milliseconds after the AFTERth metrics line of rank 0. If DTRUN_FAULT stops
 * rank 0 after a later step ("hang 0@12"), the signal comes once the rank has stopped, and the rank
 * continues after it: a slow machine does not change the step. Exits with the largest exit code.
 * --per-node tells the ranks that N of them share a node.
 */
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "tests/dist/ranks.h"

typedef struct spawn {
    const char *prefix;
    char **program;
    FILE *lines[RANKS_MAX];
    int target, signal, after; /* after 0: no signal */
    double delay_ms;
    int per_node; /* 0: nothing is said of nodes */
    int metrics;
} spawn;

static FILE *open_file(const char *prefix, const char *ending)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s.%s", prefix, ending);
    file = fopen(path, "we");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    return file;
}

static int be_program(int rank, void *self)
{
    spawn *s = self;
    char ending[32];

    if (s->per_node > 0) {
        snprintf(ending, sizeof(ending), "%d", rank / s->per_node);
        setenv("NODE_RANK", ending, 1);
    }
    snprintf(ending, sizeof(ending), "%d.err", rank);
    dup2(fileno(open_file(s->prefix, ending)), STDERR_FILENO);
    execv(s->program[0], s->program);
    perror(s->program[0]);
    return 127;
}

static void take_line(ranks *all, int rank, const char *line)
{
    spawn *s = all->self;
    siginfo_t info;

    fprintf(s->lines[rank], "%s\n", line);
    fflush(s->lines[rank]);
    if (rank != 0 || s->after == 0 || strstr(line, "\"learning_rate\"") == NULL ||
        ++s->metrics != s->after)
        return;
    dt_clock_sleep_seconds(s->delay_ms / 1e3);
    if (getenv("DTRUN_FAULT") != NULL)
        waitid(P_PID, (id_t)all->pid[0], &info, WSTOPPED | WEXITED | WNOWAIT);
    for (int i = 0; i < all->world_size; i++)
        if (s->target == -1 || s->target == i)
            kill(all->pid[i], s->signal);
    kill(all->pid[0], SIGCONT);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"ranks", required_argument, NULL, 'r'},    {"events", required_argument, NULL, 'e'},
        {"signal", required_argument, NULL, 's'},   {"timeout", required_argument, NULL, 't'},
        {"per-node", required_argument, NULL, 'n'}, {NULL, 0, NULL, 0}};
    spawn s = {0};
    ranks all = {.world_size = 1, .timeout_seconds = 250, .body = be_program, .on_line = take_line};
    FILE *exits;
    int option, worst;

    all.self = &s;
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == 'r')
            all.world_size = (int)strtol(optarg, NULL, 10);
        else if (option == 'e')
            s.prefix = optarg;
        else if (option == 'n')
            s.per_node = (int)strtol(optarg, NULL, 10);
        else if (option == 't')
            all.timeout_seconds = strtod(optarg, NULL);
        else if (option != 's' ||
                 sscanf(optarg, "%d:%d:%d:%lf", &s.target, &s.signal, &s.after, &s.delay_ms) < 3)
            return 2;
    }
    if (s.prefix == NULL || optind >= argc || all.world_size < 1 || all.world_size > RANKS_MAX)
        return 2;
    s.program = argv + optind;
    for (int rank = 0; rank < all.world_size; rank++) {
        char ending[16];

        snprintf(ending, sizeof(ending), "%d", rank);
        s.lines[rank] = open_file(s.prefix, ending);
    }
    worst = ranks_run(&all);
    exits = open_file(s.prefix, "exits");
    for (int rank = 0; rank < all.world_size; rank++) {
        fclose(s.lines[rank]);
        fprintf(exits, "%d %d %.2f\n", rank, all.code[rank], all.ended_seconds[rank]);
    }
    fclose(exits);
    return worst;
}
