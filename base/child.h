/* child: starts programs, collects their output, and ends them with everything that they started.
 *
 * A program runs in a session of its own, and therefore in a process group of its own: nothing that it starts can ask
 * on the terminal, and all of it can be ended together. It inherits no descriptor but 0, 1 and 2 (unless it is in the
 * foreground), no blocked signal, and the dispositions of process.h. A signal of the terminal does not reach it, so
 * dt_child_catch_signals passes SIGINT, SIGTERM, SIGHUP and SIGQUIT on.
 *
 *   dt_child_run      runs a program to its end and collects its output
 *   dt_child_start    starts one; the caller reads its output, and calls dt_child_has_ended or dt_child_end
 *
 * Ownership  argv, environment and descriptors are borrowed; descriptors stay open here
 * Threads    any; one child, one thread. A child with `follows` is killed when the thread that started it ends
 * Errors     DT_ERR_IO: the program cannot be run, with the reason
 */
#ifndef DT_BASE_CHILD_H
#define DT_BASE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most that a killed program is waited for; it can be in a system call that cannot be interrupted. */
#define DT_CHILD_END_SECONDS 2.0

/* --- one program, to its end */

typedef dt_status dt_child_take_fn(void *context, const char *bytes, size_t length, dt_error *err);

typedef struct dt_child_call {
    const char *const *argv;  /* argv[0] is searched in PATH if it has no '/' */
    char *const *environment; /* NULL: that of this process */
    const char *input;        /* stdin; NULL: /dev/null */
    dt_strbuf *out, *errors;  /* stdout and stderr are appended; NULL: /dev/null */
    size_t most_bytes;        /* most of each that is kept, the rest is dropped; 0: everything */
    double seconds;           /* time limit, after which the group is killed; 0: none */
    /* Instead of `out`: called with stdout as it arrives. An error ends the program. */
    dt_child_take_fn *take;
    void *context;
    bool follows;    /* the program is killed if the calling thread ends first */
    bool foreground; /* as in dt_child_spec; without `input` it reads stdin of this process */
    /* Remedy if argv[0] does not exist: then the error is DT_ERR_UNSUPPORTED, with this text. NULL: DT_ERR_IO. */
    const char *missing;
} dt_child_call;

/* Runs a program, and ends what it has left in its group. *exit_code is its exit code, or 128 plus the
 * signal that ended it. Output that others still write after the program's end is not waited for.
 * DT_ERR_TIMEOUT: the time limit. */
dt_status dt_child_run(int *exit_code, const dt_child_call *call, dt_error *err);

/* --- programs with OpenMP */

/* How long an OpenMP thread spins at a barrier before it sleeps. The default is milliseconds, which on shared cores takes
 * the time slice of the very thread that it waits for: next to one other busy process, a training step of a small model
 * takes 48 ms instead of 30 (13 alone). Never spinning costs 40 % alone. This count costs 3 % alone and gives 35 ms next
 * to the other process (docs/notes/training.md). */
#define DT_OMP_SPIN       "GOMP_SPINCOUNT"
#define DT_OMP_SPIN_COUNT "1000"

/* Returns whether a program that starts the engine sets it: the user has set neither it nor OMP_WAIT_POLICY. */
bool dt_omp_spin_is_open(void);

/* --- one program that the caller attends to */

#define DT_CHILD_NULL  0    /* /dev/null */
#define DT_CHILD_SHARE (-1) /* that of this process */

typedef struct dt_child_spec {
    const char *const *argv;
    const char *program;      /* the file to run, if it is not argv[0] */
    char *const *environment; /* NULL: that of this process */
    const char *folder;       /* working directory; NULL: that of this process */
    int in, out, errors;      /* a descriptor, DT_CHILD_NULL or DT_CHILD_SHARE */
    bool follows;             /* as above */
    /* The program acts for the user like this process: it stays in this process's group, with its terminal, and keeps
     * all descriptors. It is ended without its group. */
    bool foreground;
    bool detached; /* SIGHUP, SIGINT and SIGQUIT get their defaults even if ignored here */
} dt_child_spec;

typedef struct dt_child {
    pid_t pid;     /* 0: not started, or its end was noted */
    pid_t group;   /* its process group; 0: that of this process, or not started */
    int slot;      /* of the signals that are passed on; -1: none */
    bool alone;    /* only the program itself is ended, not its group */
    bool is_found; /* false after a failed start: argv[0] does not exist */
} dt_child;

dt_status dt_child_start(dt_child *child, const dt_child_spec *spec, dt_error *err);

/* Returns true once, when the program has ended; does not wait. *code: its exit code, or the negative number of the
 * signal that ended it. False for a child that was not started. */
bool dt_child_has_ended(dt_child *child, int *code);

/* Waits for the end up to `seconds`; false: it still runs. *code as above. */
bool dt_child_wait(dt_child *child, int *code, double seconds);

/* Kills the group and waits for the program, at most DT_CHILD_END_SECONDS. If the program has ended before,
 * it still kills what is left of the group: ssh leaves the children of its ProxyCommand. Call it soon after
 * that end, and once. */
void dt_child_end(dt_child *child);

/* From now on dt_child_end spares the program's group: something in it serves other processes, as the ProxyCommand of
 * an ssh does whose connection others share. */
void dt_child_spare_group(dt_child *child);

/* --- signals */

/* For the main of a program that starts others: SIGINT, SIGTERM, SIGHUP and SIGQUIT, if they are not ignored, are sent
 * to all children before they end this process. */
void dt_child_catch_signals(void);
/* For other handlers of these signals: sends the signal to all children. Safe in a handler. */
void dt_child_pass_on(int number);

/* For the main of a program with one thread: starts a process that kills all children, with their groups, when this
 * process ends, however it ends. Returns false if that process cannot be started. */
bool dt_child_guard(void);

#ifdef __cplusplus
}
#endif
#endif
