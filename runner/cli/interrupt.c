#include "runner/cli/command.h"

#include <signal.h>
#include <stddef.h>

#include "base/child.h"

static volatile sig_atomic_t seen;

static void note_signal(int number)
{
    seen = number;
    dt_child_pass_on(number);
}

void dt_interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART}, before;

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup */
        sigaction(SIGHUP, &action, NULL);
}

bool dt_interrupt_seen(void)
{
    return seen != 0;
}
