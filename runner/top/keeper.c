#include "runner/top/keeper.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/startup.h"

#define GAP_SECONDS 10.0

extern char **environ;

void dt_keeper_look(dt_keeper *keeper)
{
    char name[] = "dtrun", command[] = "supervise", all[] = "--all-active";
    char *const argv[] = {name, command, all, NULL};
    double now = dt_clock_monotonic_seconds();
    posix_spawn_file_actions_t nothing;
    posix_spawnattr_t attributes;

    if (keeper->child > 0 && waitpid(keeper->child, NULL, WNOHANG) == 0)
        return;
    keeper->child = 0;
    if (now < keeper->next_seconds || posix_spawn_file_actions_init(&nothing) != 0)
        return;
    if (dt_startup_spawn_attributes(&attributes, 0) != 0) {
        posix_spawn_file_actions_destroy(&nothing);
        return;
    }
    keeper->next_seconds = now + GAP_SECONDS;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) /* keep its output off the screen */
        (void)posix_spawn_file_actions_addopen(&nothing, fd, "/dev/null", O_RDWR, 0);
    if (posix_spawn(&keeper->child, "/proc/self/exe", &nothing, &attributes, argv, environ) != 0)
        keeper->child = 0;
    posix_spawn_file_actions_destroy(&nothing);
    posix_spawnattr_destroy(&attributes);
}
