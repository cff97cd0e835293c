#include "runner/agent/run_in_child.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

bool dt_agent_run_in_child(dt_child_fn *work, const char *folder)
{
    pid_t child = fork();
    int status = 0;

    if (child < 0)
        return false;
    if (child == 0) {
        work(folder);
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status);
}
