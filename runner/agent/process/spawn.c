#include "runner/agent/process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"

/* Both ends of all pipes, so that one function closes what is still open. */
typedef struct plumbing {
    int channel[2], out[2], err[2], problem[2];
} plumbing;

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void plumbing_close(plumbing *pipes)
{
    int *const all[] = {pipes->channel, pipes->out, pipes->err, pipes->problem};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        close_one(&all[i][0]);
        close_one(&all[i][1]);
    }
}

static dt_status plumbing_make(plumbing *pipes, dt_error *err)
{
    memset(pipes, 0xff, sizeof(*pipes)); /* -1 in every descriptor */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipes->channel) != 0 ||
        pipe2(pipes->out, O_CLOEXEC) != 0 || pipe2(pipes->err, O_CLOEXEC) != 0 ||
        pipe2(pipes->problem, O_CLOEXEC) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot create the pipes of a rank: %s", strerror(errno));
    return DT_OK;
}

/* Runs in the child: only calls that are safe between fork and exec. Returns on failure. */
static void become(const plumbing *pipes, char *const *argv, char *const *environment,
                   const dt_spawn_place *place, pid_t agent)
{
    int nothing, channel;

    dt_startup_child_detached();
    setsid();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return;
    if (getppid() != agent)
        _exit(127); /* the agent died between fork and prctl */
    umask(place->mask);
    /* The child moves itself to the cgroup before it can start anything; if that is refused it
     * runs outside, and is found by other means. */
    if (place->cgroup_procs >= 0 && write(place->cgroup_procs, "0", 1) != 1)
        errno = 0;
    nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    /* Move the channel above all fixed numbers first: dup2 onto 3 must not hit a pipe that is
     * still needed. */
    channel = fcntl(pipes->channel[1], F_DUPFD_CLOEXEC, 10);
    if (nothing < 0 || channel < 0 || dup2(nothing, 0) < 0)
        return;
    if (dup2(pipes->out[1], 1) < 0 || dup2(pipes->err[1], 2) < 0 ||
        dup2(channel, DT_SPAWN_CHANNEL_FD) < 0)
        return;
    execve(argv[0], argv, environment);
}

dt_status dt_spawn(dt_spawned *spawned, char *const *argv, char *const *environment,
                   const dt_spawn_place *place, dt_error *err)
{
    pid_t agent = getpid();
    plumbing pipes;
    int problem, high;
    dt_status st;

    memset(spawned, 0, sizeof(*spawned));
    spawned->channel = spawned->out = spawned->err = -1;
    DT_TRY(plumbing_make(&pipes, err));
    /* Avoid the child's fixed numbers 0 to 3. */
    high = fcntl(pipes.problem[1], F_DUPFD_CLOEXEC, 10);
    if (high < 0)
        DT_THROW(err, DT_ERR_IO, "cannot create the pipes of a rank: %s", strerror(errno));
    close(pipes.problem[1]);
    pipes.problem[1] = high;
    spawned->pid = fork();
    if (spawned->pid < 0)
        DT_THROW(err, DT_ERR_IO, "cannot start a process: %s", strerror(errno));
    if (spawned->pid == 0) {
        become(&pipes, argv, environment, place, agent);
        problem = errno;
        if (write(pipes.problem[1], &problem, sizeof(problem)) < 0)
            _exit(126);
        _exit(127);
    }
    close_one(&pipes.problem[1]);
    problem = dt_startup_wait_for_exec(pipes.problem[0]);
    if (problem != 0) {
        waitpid(spawned->pid, NULL, 0);
        DT_THROW(err, DT_ERR_IO, "cannot run '%s': %s", argv[0], strerror(problem));
    }
    spawned->channel = pipes.channel[0];
    spawned->out = pipes.out[0];
    spawned->err = pipes.err[0];
    pipes.channel[0] = pipes.out[0] = pipes.err[0] = -1;
out:
    plumbing_close(&pipes);
    return st;
}
