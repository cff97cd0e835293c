/* process: sets what a program inherits at its start and what its children inherit, has its crash reported,
 * identifies processes of this boot, ends them, and says in words how they ended. */
#ifndef DT_BASE_PROCESS_H
#define DT_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* startup: sets what a program inherits from its parent, and what its children inherit from it.
 *
 * A parent can hand down ignored signals, blocked signals and closed standard streams. Each breaks a program that
 * does not expect it: with SIGCHLD ignored waitpid loses exit codes, with SIGTERM blocked nobody can end the
 * program, and with fd 2 closed error messages go into the next database that is opened.
 *
 * Threads    dt_startup before there are threads; the others any
 * Errors     none: a setting that cannot be changed is left alone
 */

/* The first call of every main. Afterwards no signal but `held` (0: none) is blocked, so that one which is pending
 * already is not lost, and none is ignored except:
 *   SIGHUP, SIGINT, SIGQUIT   if the parent ignored them: nohup, or '&' in a script
 *   SIGXFSZ                   a file at the limit of 'ulimit -f' then fails with EFBIG, like ENOSPC on a full disk
 * Standard streams that were closed are opened on /dev/null. A soft limit of the stack below 8 MiB is raised as far
 * as the hard limit allows; with less than 128 KiB the program ends with a message and DT_EXIT_SYSTEM. */
void dt_startup(int held);

/* In a child between fork and exec: no blocked signal, and default dispositions except an ignored SIGHUP, SIGINT or
 * SIGQUIT as above. Calls only functions that are safe there. */
void dt_startup_child(void);

/* The same without the exception, for a child in a session of its own (a supervisor, a rank). */
void dt_startup_child_detached(void);

/* Makes exec close every descriptor above 2: a lock or a pipe of the caller that reached a supervisor would be held as
 * long as the run. Not part of dt_startup, because `dtrun launch <(...)` reads one. Safe between fork and exec. */
void dt_startup_close_on_exec(void);
/* Closes `first` and every higher descriptor. Safe between fork and exec. */
void dt_startup_close_from(int first);

/* In the parent, with the reading end of a pipe that exec closes in the child: waits for exec, or for the errno that
 * the child writes when exec fails, and returns it; 0: the program runs. */
int dt_startup_wait_for_exec(int fd);

/* crash: reports the crash of a detached process in its log, since no parent reports it.
 *
 * Threads    any; a stack that ran over is reported on the main thread only
 */

#define DT_CRASH_WORDS " was ended by SIG" /* part of the reported line */

/* After this call SIGABRT, SIGSEGV, SIGBUS, SIGFPE and SIGILL write one line to stderr before they end the process:
 * "WHO was ended by SIGSEGV; ...". Existing handlers (a sanitizer's) are kept. `who` must stay valid until exit. */
void dt_crash_report(const char *who);

/* boot: identifies the current boot of this machine, to distinguish a reboot from a node that does not respond.
 *
 * The kernel draws a new id at every boot (/proc/sys/kernel/random/boot_id). No process survives a reboot, so a process
 * identity (pid, start ticks) that was recorded under another id is invalid.
 */

#define DT_BOOT_ID_SIZE 40
/* Writes the boot id to `out` (DT_BOOT_ID_SIZE bytes), "" if it cannot be read. Returns `out`. */
char *dt_boot_id(char *out);

/* Returns milliseconds since boot, including suspend. This clock cannot be set. */
int64_t dt_boot_ms(void);

/* Returns true if both ids are known and differ; NULL is unknown. */
bool dt_boot_differs(const char *before, const char *now);

/* proc_stat: reads /proc/PID/stat (proc(5)).
 *
 * Threads    any
 */

typedef struct dt_proc_stat {
    char command[64]; /* as the process set it: any bytes, at most 63 */
    char state;       /* one letter of ps(1) */
    int64_t parent;   /* its pid */
    int64_t major_faults;
    int64_t cpu_ticks;      /* user and system */
    int64_t children_ticks; /* of children that have ended and were waited for */
    uint64_t start_ticks;   /* since boot; pid and start_ticks identify one process of this boot */
} dt_proc_stat;

/* Returns false if there is no such process, or its file cannot be read. */
bool dt_proc_stat_read(dt_proc_stat *out, int64_t pid);

/* proc_end: finds processes by their files in /proc, and kills them until none is left.
 *
 * Sees only processes whose /proc files this user can read; skips this process and zombies.
 *
 * Threads    any
 */

/* Returns true if a process matches. state: letter of /proc/PID/stat; words: contents of `file`, each word ended by a
 * zero byte; length: bytes of all words. */
typedef bool dt_proc_match_fn(const void *context, char state, const char *words, size_t length);

/* Sends SIGKILL to every process whose `file` ("cmdline", "environ") matches, repeatedly for up to `seconds`.
 * Returns how many are left. */
int64_t dt_proc_end_all(const char *file, dt_proc_match_fn *matches, const void *context,
                        double seconds);

/* Returns the pid of a matching process; 0: none. */
int64_t dt_proc_find(const char *file, dt_proc_match_fn *matches, const void *context);

/* Returns true for a process that is stopped by a signal, or held by a debugger. */
static inline bool dt_proc_is_paused(char state)
{
    return state == 'T' || state == 't';
}

/* exit: defines the exit codes of dtrun, which the history also stores for a run. */

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

/* Codes of a shell, ssh or a child whose program could not be run. */
#define DT_EXIT_CANNOT_RUN 126
#define DT_EXIT_NO_PROGRAM 127

/* Returns the code of a process from its status of waitpid: its exit code, or the negative signal number. */
int dt_exit_code(int wait_status);
/* Returns that code as a shell gives it, and exit can pass it on: 128 + N for signal N. */
int dt_exit_code_for_shell(int code);
/* The reverse, for the signals that exist (1 to 64); other codes are returned unchanged. */
int dt_exit_code_of_shell(int code);

/* Writes how a process ended: "ended with exit code 3", "was ended by SIGKILL (Killed)". `code`: the exit code, or the
 * negative signal number. Returns `out`. */
const char *dt_exit_words(char out[DT_EXIT_WORDS_BYTES], int code);
/* The same for a code as a shell, ssh or a child gives it. */
const char *dt_exit_words_of_shell(char out[DT_EXIT_WORDS_BYTES], int code);

#ifdef __cplusplus
}
#endif

#endif
