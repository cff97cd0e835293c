#include "base/startup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/exit.h"

#define STACK_LEAST ((rlim_t)128 << 10)
#define STACK_USUAL ((rlim_t)8 << 20)
/* close_range, of Linux 5.9, and its flag, of 5.11; older headers lack them. */
#define CLOSE_RANGE         436
#define CLOSE_RANGE_ON_EXEC 4U
#define DESCRIPTORS_MOST    65536

static bool is_ignored(int number)
{
    struct sigaction now;

    return sigaction(number, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
           now.sa_handler == SIG_IGN;
}

/* Returns true for signals that people ignore on purpose, for a program and its children. */
static bool is_kept(int number)
{
    return number == SIGHUP || number == SIGINT || number == SIGQUIT;
}

static void set_default(int number)
{
    struct sigaction usual;

    memset(&usual, 0, sizeof(usual));
    usual.sa_handler = SIG_DFL;
    sigaction(number, &usual, NULL);
}

static void block_only(int number)
{
    sigset_t blocked;

    sigemptyset(&blocked);
    if (number != 0)
        sigaddset(&blocked, number);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

/* Opens /dev/null for closed standard streams: open returns the lowest free number, which is
 * that of the closed stream. */
static void open_standard_streams(void)
{
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (fcntl(i, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) < 0)
            return;
}

/* Raises a soft limit below 8 MiB as far as the hard limit allows, since the main thread's stack
 * grows up to the current limit. With less than STACK_LEAST the program would be killed by
 * SIGSEGV without a message. */
static void ensure_stack(void)
{
    static const char message[] =
        "dtrun: the limit on the stack ('ulimit -s') is below 128 KiB: raise it\n";
    struct rlimit limit;

    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= STACK_USUAL)
        return;
    limit.rlim_cur = limit.rlim_max < STACK_USUAL ? limit.rlim_max : STACK_USUAL;
    (void)setrlimit(RLIMIT_STACK, &limit);
    if (limit.rlim_cur < STACK_LEAST) {
        ssize_t written = write(STDERR_FILENO, message, sizeof(message) - 1);

        (void)written;
        _exit(DT_EXIT_SYSTEM);
    }
}

/* Returns the number after the highest that a descriptor can have, for kernels without close_range. */
static int descriptors_end(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < DESCRIPTORS_MOST
               ? (int)limit.rlim_cur
               : DESCRIPTORS_MOST;
}

void dt_startup_close_on_exec(void)
{
    int end;

    if (syscall(CLOSE_RANGE, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_ON_EXEC) == 0)
        return;
    end = descriptors_end();
    for (int fd = STDERR_FILENO + 1; fd < end; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void dt_startup_close_from(int first)
{
    int end;

    if (syscall(CLOSE_RANGE, first, ~0U, 0U) == 0)
        return;
    end = descriptors_end();
    for (int fd = first; fd < end; fd++)
        (void)close(fd);
}

void dt_startup(int held)
{
    open_standard_streams();
    ensure_stack();
    for (int number = 1; number < NSIG; number++)
        if (!is_kept(number) && is_ignored(number)) /* handlers of a sanitizer are kept */
            set_default(number);
    signal(SIGXFSZ, SIG_IGN);
    block_only(held);
}

void dt_startup_child(void)
{
    for (int number = 1; number < NSIG; number++)
        if (!is_kept(number) || !is_ignored(number))
            set_default(number);
    block_only(0);
}

void dt_startup_child_detached(void)
{
    for (int number = 1; number < NSIG; number++)
        set_default(number);
    block_only(0);
}

int dt_startup_wait_for_exec(int fd)
{
    int problem = 0;
    ssize_t got;

    do
        got = read(fd, &problem, sizeof(problem));
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(problem) ? problem : 0;
}

int dt_startup_spawn_attributes(posix_spawnattr_t *attributes, short flags)
{
    int problem = posix_spawnattr_init(attributes);
    sigset_t none, usual;

    if (problem != 0)
        return problem;
    sigemptyset(&none);
    sigfillset(&usual);
    for (int number = 1; number < NSIG; number++)
        if (is_kept(number) && is_ignored(number))
            sigdelset(&usual, number);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &usual);
    posix_spawnattr_setflags(attributes,
                             (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | flags));
    return 0;
}
