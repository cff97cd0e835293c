#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"

#define LOOK_SECONDS \
    0.002 /* without a pidfd: first pause between two looks at a program that is about to end */
#define LOOK_MOST_SECONDS 0.05
#define PIDFD_SECONDS     10   /* with a pidfd: the longest wait before another look */
#define SLICE_MS          100  /* how often the program's end is checked while its output is open */
#define AFTER_SECONDS     0.25 /* for output that arrives after the program's end */
#define SLOTS             1024

extern char **environ;

/* --- the children that signals are passed on to */

/* One entry a child: its pid where its group is meant, -pid where only the program is, 0: free. The guard and the child
 * share it, in memory that fork does not copy: the child enters itself before exec. */
#define RESERVED INT_MIN

static atomic_int own_slots[SLOTS];
static atomic_int *slots = own_slots;

static int take_slot(void)
{
    for (int i = 0; i < SLOTS; i++) {
        int nobody = 0;

        if (atomic_compare_exchange_strong(&slots[i], &nobody, RESERVED))
            return i;
    }
    return -1;
}

static void enter(int slot, pid_t pid)
{
    if (slot >= 0)
        atomic_store(&slots[slot], pid);
}

static void free_slot(dt_child *child)
{
    if (child->slot >= 0)
        atomic_store(&slots[child->slot], 0);
    child->slot = -1;
}

void dt_child_pass_on(int number)
{
    int before = errno;

    for (int i = 0; i < SLOTS; i++) {
        int value = atomic_load(&slots[i]);

        if (value == 0 || value == RESERVED)
            continue;
        if (kill(-value, number) != 0 && value > 0) /* it has no group yet */
            (void)kill(value, number);
    }
    errno = before;
}

static void pass_on_and_end(int number)
{
    dt_child_pass_on(number);
    raise(number); /* delivered when this handler returns, with the default action */
}

void dt_child_catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction now, action = {.sa_handler = pass_on_and_end};

    action.sa_flags = (int)SA_RESETHAND | SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (sigaction(numbers[i], NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
            now.sa_handler == SIG_DFL)
            sigaction(numbers[i], &action, NULL);
}

/* Runs in the guard: waits for the end of its parent, which holds the other end of the pipe. */
static void guard(int end)
{
    char byte;

    dt_startup_child();
    setsid();
    if (dup2(end, STDIN_FILENO) != 0)
        _exit(1);
    dt_startup_close_from(STDOUT_FILENO);
    while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
        ;
    dt_child_pass_on(SIGKILL);
    _exit(0);
}

bool dt_child_guard(void)
{
    void *shared =
        mmap(NULL, sizeof(own_slots), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int ends[2];
    pid_t pid;

    if (shared == MAP_FAILED || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    slots = shared;
    pid = fork();
    if (pid == 0) {
        close(ends[1]);
        if (fork() == 0) /* so that init reaps it */
            guard(ends[0]);
        _exit(0);
    }
    close(ends[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return pid > 0; /* ends[1] stays open as long as this process lives */
}

bool dt_omp_spin_is_open(void)
{
    return getenv(DT_OMP_SPIN) == NULL && getenv("OMP_WAIT_POLICY") == NULL;
}

/* --- the start */

typedef struct beginning {
    const dt_child_spec *spec;
    char *const *environment;
    pid_t parent;
    int slot;
    int failed; /* gets the errno of a failed start; exec closes it */
} beginning;

static const char *program_of(const dt_child_spec *spec)
{
    return spec->program != NULL ? spec->program : spec->argv[0];
}

static bool place(int fd, int number, int nothing)
{
    if (fd == DT_CHILD_SHARE)
        return true;
    return dup2(fd == DT_CHILD_NULL ? nothing : fd, number) >= 0;
}

/* Runs in the child between fork and exec: only calls that are safe there. */
static void become(const beginning *all)
{
    const dt_child_spec *spec = all->spec;
    int nothing, why;

    if (spec->detached)
        dt_startup_child_detached();
    else
        dt_startup_child();
    if (!spec->foreground)
        setsid();
    enter(all->slot, getpid());
    if (spec->follows && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != all->parent))
        _exit(DT_EXIT_NO_PROGRAM);
    nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing >= 0 && place(spec->in, STDIN_FILENO, nothing) &&
        place(spec->out, STDOUT_FILENO, nothing) && place(spec->errors, STDERR_FILENO, nothing) &&
        (spec->folder == NULL || chdir(spec->folder) == 0)) {
        if (!spec->foreground)
            dt_startup_close_on_exec();
        execvpe(program_of(spec), (char *const *)spec->argv, all->environment);
    }
    why = errno;
    while (write(all->failed, &why, sizeof(why)) < 0 && errno == EINTR)
        ;
    _exit(DT_EXIT_NO_PROGRAM);
}

/* Forks with all signals blocked: a handler of this process must not run in the child. */
static pid_t fork_quietly(const beginning *all)
{
    sigset_t every, before;
    pid_t pid;
    int why;

    sigfillset(&every);
    sigprocmask(SIG_SETMASK, &every, &before);
    pid = fork();
    if (pid == 0)
        become(all);
    why = errno;
    if (pid > 0)
        enter(all->slot, pid);
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return pid;
}

dt_status dt_child_start(dt_child *child, const dt_child_spec *spec, dt_error *err)
{
    beginning all = {.spec = spec,
                     .environment = spec->environment != NULL ? spec->environment : environ,
                     .parent = getpid()};
    int ends[2], high, why;

    *child = (dt_child){.slot = -1, .is_found = true, .alone = spec->foreground};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot create a pipe: %s", strerror(errno));
    high = fcntl(ends[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1); /* not one that dup2 replaces */
    close(ends[1]);
    all.failed = high;
    if (!spec->foreground) /* the terminal reaches those itself */
        child->slot = take_slot();
    all.slot = child->slot;
    child->pid = high >= 0 ? fork_quietly(&all) : -1;
    why = child->pid < 0 ? errno : 0;
    if (high >= 0)
        close(high);
    if (child->pid > 0)
        why = dt_startup_wait_for_exec(ends[0]);
    close(ends[0]);
    if (why == 0) {
        child->group = spec->foreground ? 0 : child->pid;
        return DT_OK;
    }
    if (child->pid > 0)
        (void)waitpid(child->pid, NULL, 0); /* it exits after its message */
    free_slot(child);
    child->pid = 0;
    child->is_found = why != ENOENT;
    return DT_FAIL(err, DT_ERR_IO, "cannot run '%s': %s", program_of(spec), strerror(why));
}

/* --- the end */

bool dt_child_has_ended(dt_child *child, int *code)
{
    int status = 0;
    pid_t got;

    if (child->pid <= 0)
        return false;
    do
        got = waitpid(child->pid, &status, WNOHANG);
    while (got < 0 && errno == EINTR);
    if (got == 0)
        return false;
    free_slot(child);
    child->pid = 0;
    *code = got < 0 ? 255 : dt_exit_code(status);
    return true;
}

/* Waits for the program's end, or for `pause` seconds. The pauses without a pidfd grow: most programs end at once. */
static void await_end(int pidfd, double *pause, double left)
{
    struct pollfd end = {pidfd, POLLIN, 0};

    if (pidfd >= 0) {
        (void)poll(&end, 1, (int)(1e3 * fmin(left, PIDFD_SECONDS)) + 1);
        return;
    }
    dt_clock_sleep_seconds(*pause);
    *pause = fmin(2 * *pause, LOOK_MOST_SECONDS);
}

bool dt_child_wait(dt_child *child, int *code, double seconds)
{
    double deadline = dt_clock_monotonic_seconds() + seconds, pause = LOOK_SECONDS, left = seconds;
    int pidfd = child->pid > 0 ? (int)syscall(SYS_pidfd_open, child->pid, 0) : -1;
    bool ended;

    while (!(ended = dt_child_has_ended(child, code)) && left >= 0) {
        await_end(pidfd, &pause, left);
        left = deadline - dt_clock_monotonic_seconds();
    }
    if (pidfd >= 0)
        close(pidfd);
    return ended;
}

void dt_child_end(dt_child *child)
{
    int code;

    if (child->group > 0 && !child->alone)
        (void)kill(-child->group, SIGKILL);
    child->group = 0;
    if (child->pid <= 0)
        return;
    (void)kill(child->pid, SIGKILL);
    (void)dt_child_wait(child, &code, DT_CHILD_END_SECONDS);
    free_slot(child);
    child->pid = 0;
}

void dt_child_spare_group(dt_child *child)
{
    child->alone = true;
    if (child->slot >= 0)
        atomic_store(&slots[child->slot], -child->pid);
}

/* --- to the end, with its output */

typedef struct running {
    const dt_child_call *call;
    dt_child child;
    int out, errors; /* the reading ends; -1: closed, or not asked for */
    int code;
    bool ended;
    double deadline; /* INFINITY: none */
} running;

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static dt_status take(running *all, bool errors, const char *bytes, size_t length, dt_error *err)
{
    const dt_child_call *call = all->call;
    dt_strbuf *kept = errors ? call->errors : call->out;

    if (!errors && call->take != NULL)
        return call->take(call->context, bytes, length, err);
    if (call->most_bytes > 0 && kept->length + length > call->most_bytes)
        length = kept->length < call->most_bytes ? call->most_bytes - kept->length : 0;
    dt_strbuf_add(kept, bytes, length);
    return DT_OK;
}

static dt_status read_from(running *all, int *fd, bool errors, dt_error *err)
{
    char bytes[16384];
    ssize_t got = read(*fd, bytes, sizeof(bytes));

    if (got > 0)
        return take(all, errors, bytes, (size_t)got, err);
    if (got == 0 || (errno != EINTR && errno != EAGAIN))
        close_end(fd);
    return DT_OK;
}

/* Reads both pipes until they are closed, or the program has ended and nothing more arrives: what it started may keep
 * them open. */
static dt_status collect(running *all, dt_error *err)
{
    double quiet = INFINITY; /* when the wait for late output ends */
    double look = 0;         /* when the program's end is checked next */

    while (all->out >= 0 || all->errors >= 0) {
        struct pollfd ends[2] = {{all->out, POLLIN, 0}, {all->errors, POLLIN, 0}};
        double now = dt_clock_monotonic_seconds();
        double left = fmin(fmin(all->deadline, quiet) - now, SLICE_MS / 1e3);
        dt_status st = DT_OK;
        int ready;

        if (now >= all->deadline)
            return DT_FAIL(err, DT_ERR_TIMEOUT, "'%s' did not end within %.0f s",
                           all->call->argv[0], all->call->seconds);
        if (now >= quiet)
            return DT_OK;
        ready = poll(ends, 2, left > 0 ? (int)(left * 1e3) + 1 : 0);
        if (ready < 0 && errno != EINTR)
            return DT_FAIL(err, DT_ERR_IO, "cannot wait for '%s': %s", all->call->argv[0],
                           strerror(errno));
        if (ready > 0 && ends[0].revents != 0)
            st = read_from(all, &all->out, false, err);
        if (ready > 0 && ends[1].revents != 0 && st == DT_OK)
            st = read_from(all, &all->errors, true, err);
        if (st != DT_OK)
            return st;
        if (all->ended || (ready > 0 && now < look))
            continue;
        look = now + SLICE_MS / 1e3;
        all->ended = dt_child_has_ended(&all->child, &all->code);
        if (all->ended)
            quiet = dt_clock_monotonic_seconds() + AFTER_SECONDS;
    }
    return DT_OK;
}

/* Returns a file in memory with the text, at its beginning; -1 on failure. */
static int open_input(const char *text)
{
    int fd = memfd_create("in", MFD_CLOEXEC);

    if (fd >= 0 &&
        (dt_file_write_all(fd, text, strlen(text), NULL) != DT_OK || lseek(fd, 0, SEEK_SET) != 0))
        close_end(&fd);
    return fd;
}

static dt_status begin(running *all, dt_error *err)
{
    const dt_child_call *call = all->call;
    int out[2] = {-1, -1}, errors[2] = {-1, -1}, in = -1;
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_child_spec spec = {
        .argv = call->argv,
        .environment = call->environment,
        .follows = call->follows,
        .foreground = call->foreground,
    };

    if ((call->input != NULL && (in = open_input(call->input)) < 0) ||
        ((call->out != NULL || call->take != NULL) && pipe2(out, O_CLOEXEC) != 0) ||
        (call->errors != NULL && pipe2(errors, O_CLOEXEC) != 0))
        DT_THROW(err, DT_ERR_IO, "cannot create the pipes of '%s': %s", call->argv[0],
                 strerror(errno));
    spec.in = in >= 0 ? in : call->foreground ? DT_CHILD_SHARE : DT_CHILD_NULL;
    spec.out = out[1] >= 0 ? out[1] : DT_CHILD_NULL;
    spec.errors = errors[1] >= 0 ? errors[1] : DT_CHILD_NULL;
    st = dt_child_start(&all->child, &spec, &problem);
    if (st != DT_OK && call->missing != NULL && !all->child.is_found)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "cannot find '%s': %s", call->argv[0], call->missing);
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    all->out = out[0];
    all->errors = errors[0];
    out[0] = errors[0] = -1;
out:
    for (int i = 0; i < 2; i++) {
        close_end(&out[i]);
        close_end(&errors[i]);
    }
    close_end(&in);
    return st;
}

dt_status dt_child_run(int *exit_code, const dt_child_call *call, dt_error *err)
{
    running all = {.call = call, .out = -1, .errors = -1, .child = {.slot = -1}};
    dt_status st = DT_OK;

    all.deadline = call->seconds > 0 ? dt_clock_monotonic_seconds() + call->seconds : INFINITY;
    DT_TRY(begin(&all, err));
    DT_TRY(collect(&all, err));
    if (!all.ended &&
        !dt_child_wait(&all.child, &all.code, all.deadline - dt_clock_monotonic_seconds()))
        DT_THROW(err, DT_ERR_TIMEOUT, "'%s' did not end within %.0f s", call->argv[0],
                 call->seconds);
    *exit_code = dt_exit_code_for_shell(all.code);
out:
    close_end(&all.out); /* ends a program that still writes */
    close_end(&all.errors);
    dt_child_end(&all.child);
    return st;
}
