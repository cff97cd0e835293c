#include "base/crash.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static const char *crash_who = "";

static void write_text(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));

    (void)written; /* a failed write cannot be reported anywhere */
}

/* Signal handler: calls only async-signal-safe functions. */
static void on_crash(int number)
{
    struct sigaction usual;
    const char *name = sigabbrev_np(number);

    write_text(crash_who);
    write_text(DT_CRASH_WORDS);
    write_text(name != NULL ? name : "?");
    write_text("; if nothing above says why, a limit of memory, threads or stack may be too low "
               "('ulimit -a')\n");
    memset(&usual, 0, sizeof(usual));
    usual.sa_handler = SIG_DFL;
    sigaction(number, &usual, NULL);
    raise(number);
}

void dt_crash_report(const char *who)
{
    static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    static char stack[16384]; /* the normal stack may have overflowed */
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action, now;

    crash_who = who;
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_crash;
    action.sa_flags = SA_NODEFER;
    if (sigaltstack(&other, NULL) == 0)
        action.sa_flags |= SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (sigaction(numbers[i], NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
            now.sa_handler == SIG_DFL)
            sigaction(numbers[i], &action, NULL);
}
