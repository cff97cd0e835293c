#include "engine/channel/stop.h"

#include <signal.h>
#include <stddef.h>

void dt_stop_block(void)
{
    sigset_t stop;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &stop, NULL);
}

bool dt_stop_asked(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, SIGTERM) == 1;
}
