#define _GNU_SOURCE
#include "runner/agent/apart.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/banned.h"

void dt_agent_apart(dt_apart_fn *work, const char *folder)
{
    pid_t child = fork();

    if (child < 0)
        return;
    if (child == 0) {
        work(folder);
        _exit(0);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}
