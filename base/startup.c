#define _GNU_SOURCE
#include "base/startup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

static bool is_ignored(int number)
{
    struct sigaction now;

    return sigaction(number, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
           now.sa_handler == SIG_IGN;
}

/* Signals that a person ignores on purpose, for a program and all of its children. */
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

/* open returns the lowest free number, which is the closed stream's. */
static void open_standard_streams(void)
{
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (fcntl(i, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) < 0)
            return;
}

void dt_startup(int held)
{
    open_standard_streams();
    for (int number = 1; number < NSIG; number++)
        if (!is_kept(number) && is_ignored(number)) /* a sanitizer's handlers stay */
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
