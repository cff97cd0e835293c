#include "runner/cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/startup.h"

extern char **environ;

static void close_both(int *pair)
{
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
    pair[0] = pair[1] = -1;
}

typedef struct beginning {
    int out, errors;
    char *const *argv;
    bool follows; /* the program is killed if this process ends first */
} beginning;

/* Runs in the child after fork. A failure is written as errno to `failed`, which exec closes. */
static void be_child(const beginning *of, pid_t parent, int failed)
{
    int why;

    dt_startup_child();
    if (of->follows && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
        _exit(127);
    if (dup2(of->out, STDOUT_FILENO) >= 0 && dup2(of->errors, STDERR_FILENO) >= 0)
        execve(of->argv[0], of->argv, environ);
    why = errno;
    while (write(failed, &why, sizeof(why)) < 0 && errno == EINTR)
        ;
    _exit(127);
}

static int read_errno(int end)
{
    ssize_t got;
    int why = 0;

    do
        got = read(end, &why, sizeof(why));
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(why) ? why : 0;
}

static dt_status start(pid_t *pid, const beginning *of, dt_error *err)
{
    int pair[2] = {-1, -1}, failed;
    pid_t parent = getpid();
    dt_status st = DT_OK;

    if (pipe2(pair, O_CLOEXEC) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot create a pipe: %s", strerror(errno));
    *pid = fork();
    if (*pid == 0)
        be_child(of, parent, pair[1]);
    failed = *pid < 0 ? errno : 0;
    close(pair[1]);
    pair[1] = -1;
    if (*pid > 0)
        failed = read_errno(pair[0]);
    if (failed != 0)
        DT_THROW(err, DT_ERR_IO, "cannot run '%s': %s", of->argv[0], strerror(failed));
out:
    close_both(pair);
    return st;
}

/* Milliseconds until `deadline` for poll; -1 without a deadline. */
static int left_ms(double deadline)
{
    double left = deadline - dt_clock_monotonic_seconds();

    return isinf(deadline) ? -1 : left > 0 ? (int)(left * 1000) + 1 : 0;
}

typedef struct reader {
    dt_child_take_fn *take;
    void *context;
} reader;

static dt_status keep(void *context, const char *bytes, size_t length, dt_error *err)
{
    (void)err;
    dt_strbuf_add(context, bytes, length);
    return DT_OK;
}

/* Reads both pipes until they are closed. DT_ERR_TIMEOUT after the deadline. */
static dt_status collect(int out_fd, int errors_fd, const reader *out, dt_strbuf *errors,
                         double deadline, dt_error *err)
{
    struct pollfd ends[2] = {{out_fd, POLLIN, 0}, {errors_fd, POLLIN, 0}};
    const reader readers[2] = {*out, {keep, errors}};
    char bytes[4096];
    dt_status st = DT_OK;

    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        if (left_ms(deadline) == 0)
            return DT_FAIL(err, DT_ERR_TIMEOUT, "the program did not end in time");
        if (poll(ends, 2, left_ms(deadline)) < 0 && errno != EINTR)
            return DT_FAIL(err, DT_ERR_IO, "cannot wait for a program: %s", strerror(errno));
        for (int i = 0; i < 2; i++) {
            ssize_t got;
            if (ends[i].fd < 0 || ends[i].revents == 0)
                continue;
            got = read(ends[i].fd, bytes, sizeof(bytes));
            if (got > 0)
                DT_TRY(readers[i].take(readers[i].context, bytes, (size_t)got, err));
            else if (got == 0 || errno != EINTR)
                ends[i].fd = -1;
            ends[i].revents = 0;
        }
    }
out:
    return st;
}

static dt_status run(int *exit_code, const reader *out, dt_strbuf *errors, char *const *argv,
                     double seconds, bool follows, dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + seconds;
    int out_pipe[2] = {-1, -1}, errors_pipe[2] = {-1, -1}, ended = 0;
    dt_status st = DT_OK;
    pid_t pid = -1;

    if (pipe2(out_pipe, O_CLOEXEC) != 0 || pipe2(errors_pipe, O_CLOEXEC) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot create a pipe: %s", strerror(errno));
    DT_TRY(start(&pid, &(beginning){out_pipe[1], errors_pipe[1], argv, follows}, err));
    close(out_pipe[1]);
    close(errors_pipe[1]);
    out_pipe[1] = errors_pipe[1] = -1;
    DT_TRY(collect(out_pipe[0], errors_pipe[0], out, errors, deadline, err));
out:
    close_both(out_pipe); /* before waiting: ends a program that still writes */
    close_both(errors_pipe);
    if (pid > 0 && st == DT_ERR_TIMEOUT)
        kill(pid, SIGKILL);
    if (pid > 0) {
        while (waitpid(pid, &ended, 0) < 0 && errno == EINTR)
            ;
        *exit_code = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
    }
    return st;
}

dt_status dt_child_run(int *exit_code, dt_strbuf *out, dt_strbuf *errors, char *const *argv,
                       dt_error *err)
{
    return dt_child_run_within(exit_code, out, errors, argv, INFINITY, err);
}

dt_status dt_child_run_within(int *exit_code, dt_strbuf *out, dt_strbuf *errors, char *const *argv,
                              double seconds, dt_error *err)
{
    return run(exit_code, &(reader){keep, out}, errors, argv, seconds, false, err);
}

dt_status dt_child_stream(int *exit_code, dt_child_take_fn *take, void *context, dt_strbuf *errors,
                          char *const *argv, dt_error *err)
{
    return run(exit_code, &(reader){take, context}, errors, argv, INFINITY, true, err);
}

const char *dt_child_complaint(dt_strbuf *errors, const char *name)
{
    const char *found = NULL, *last = "";

    for (char *line = errors->data, *next; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        if (strncmp(line, name, strlen(name)) == 0)
            found = line + strlen(name);
        if (line[0] != '\0')
            last = line;
    }
    return found != NULL ? found : last;
}

dt_status dt_child_engine_status(int exit_code, dt_strbuf *errors, dt_error *err)
{
    char end[DT_EXIT_WORDS_BYTES];
    const char *complaint;

    if (exit_code == 0)
        return DT_OK;
    complaint = dt_child_complaint(errors, "dtrun-engine: ");
    if (complaint[strspn(complaint, " ")] != '\0')
        return DT_FAIL(err, exit_code == 2 ? DT_ERR_USAGE : DT_ERR_CORRUPT, "%s", complaint);
    return DT_FAIL(err, DT_ERR_IO, "dtrun-engine %s, without a message",
                   dt_exit_words_of_shell(end, exit_code));
}
