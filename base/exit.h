/* exit: defines the exit codes of dtrun, which the history also stores for a run. */
#ifndef DT_BASE_EXIT_H
#define DT_BASE_EXIT_H

#define DT_EXIT_WORDS_BYTES 96

typedef enum dt_exit {
    DT_EXIT_GOOD = 0,
    DT_EXIT_FAILED = 1,        /* the run failed */
    DT_EXIT_USAGE = 2,         /* command line or recipe */
    DT_EXIT_SYSTEM = 3,        /* a node or the system */
    DT_EXIT_STOPPED = 4,       /* stopped by a person */
    DT_EXIT_LEFT = 5,          /* memory or processes not released */
    DT_EXIT_TIME_LIMIT = 124,  /* the recipe's time limit was reached */
    DT_EXIT_INTERRUPTED = 130, /* Ctrl-C; a followed run continues */
} dt_exit;

/* Writes how a process ended: "ended with exit code 3", "was ended by SIGKILL (Killed)". `code`: the exit code, or the
 * negative signal number. Returns `out`. */
const char *dt_exit_words(char out[DT_EXIT_WORDS_BYTES], int code);
/* The same for a code as a shell, ssh or a child gives it: 128 + N is signal N, for the signals that exist (1 to
 * 64). */
const char *dt_exit_words_of_shell(char out[DT_EXIT_WORDS_BYTES], int code);

#endif
